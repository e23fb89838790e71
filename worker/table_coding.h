// What a worker keeps of a table whose values are encoded: one for each table, however often it is
// opened. Lives on the worker's loop.
#ifndef LEEWAY_WORKER_TABLE_CODING_H_
#define LEEWAY_WORKER_TABLE_CODING_H_

#include <optional>
#include <utility>

#include "compress/codec_schedule.h"
#include "worker/mutants.h"
#include "worker/pulled_blocks.h"
#include "worker/push_encoder.h"

namespace leeway::worker {

struct TableCoding {
  TableCoding(const TableSpec& spec, compress::TableCodecs with, std::uint32_t table,
              std::uint32_t rank, std::uint32_t num_shards, std::uint64_t residual_bytes_max,
              Mutant mutant)
      : table_id(table),
        codecs(std::move(with)),
        pushes(spec, &codecs, table, rank, num_shards, residual_bytes_max),
        pulls(spec, &codecs, mutant) {}
  TableCoding(const TableCoding&) = delete;
  TableCoding& operator=(const TableCoding&) = delete;

  // What encodes a push of that clock. Where that is being decided, which a push waits for unless
  // nobody waits for it any more, nothing does.
  std::optional<std::uint32_t> ChoiceAt(std::uint64_t clock) const { return schedule.At(clock); }
  // Takes what the newest map says of the table. True if that was new.
  bool Follow(const proto::CodecSwitch& change) {
    const std::size_t choices = codecs.choices.size();
    return change.choice < choices && change.before < choices && schedule.Follow(change);
  }

  const std::uint32_t table_id;
  const compress::TableCodecs codecs;
  compress::CodecSchedule schedule;
  PushEncoder pushes;
  PulledBlocks pulls;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_TABLE_CODING_H_
