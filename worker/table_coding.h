// What a worker keeps of a table whose values are encoded: one for each table, however often it is
// opened. Lives on the worker's loop.
#ifndef LEEWAY_WORKER_TABLE_CODING_H_
#define LEEWAY_WORKER_TABLE_CODING_H_

#include "worker/pulled_blocks.h"
#include "worker/push_encoder.h"

namespace leeway::worker {

struct TableCoding {
  TableCoding(const TableSpec& spec, const compress::TableCodec& with, std::uint32_t table,
              std::uint32_t rank, std::uint32_t num_shards, std::uint64_t residual_bytes_max)
      : codec(with),
        pushes(spec, with, table, rank, num_shards, residual_bytes_max),
        pulls(spec, with) {}

  const compress::TableCodec codec;
  PushEncoder pushes;
  PulledBlocks pulls;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_TABLE_CODING_H_
