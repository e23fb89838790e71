// The encoder of what a worker pushes to one table, which keeps what a lossy codec drops of it
// (error feedback): of blocks (block_encoder.h) or rows (row_encoder.h).
//
// Pieces are encoded when they are about to be sent, in the order of their numbers; a resend has
// the same bytes. A push that servers refuse for good is taken back: what is kept is then as after
// a push of zeros.
//
// Lives on the worker's loop, in TableCoding.
#ifndef LEEWAY_WORKER_ENCODING_PUSH_ENCODER_H_
#define LEEWAY_WORKER_ENCODING_PUSH_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "worker/encoding/block_encoder.h"
#include "worker/encoding/encoded_push.h"
#include "worker/encoding/residual_file.h"
#include "worker/encoding/row_encoder.h"

namespace leeway::worker {

class PushEncoder {
 public:
  // `codecs` outlive it.
  PushEncoder(const TableSpec& spec, const compress::TableCodecs* codecs,
              const PushContext& context)
      : spec_(spec), blocks_(spec, codecs, context), rows_(spec, codecs, context) {}

  // Encodes a dense block by the table's codec number `choice`: `values` are [elements] of the
  // table's dtype. Values that the codec cannot carry (NaN, infinity) are sent unchanged, without
  // momentum. Values that the codec would not make smaller are sent unencoded, with momentum. With
  // a codec without feedback, all that was kept is sent with this push.
  EncodedValues EncodeBlock(std::uint32_t choice, std::uint64_t block, const std::byte* values,
                            std::uint64_t elements, std::optional<double> learning_rate) {
    return blocks_.Encode(choice, block, values, elements, learning_rate);
  }

  // Encodes rows of a sparse table, [keys] × row width, all of one shard; changes them. Where what
  // is kept is over its limit, the message has as many rows again, of those that were not pushed
  // for longest.
  EncodedRows EncodeRows(std::uint32_t choice, std::uint32_t shard,
                         std::span<const std::uint64_t> keys, std::byte* rows,
                         std::optional<double> learning_rate) {
    return rows_.Encode(choice, shard, keys, rows, learning_rate);
  }

  // Undo what a refused push of a block, or of rows, did to what is kept, but for its momentum in
  // pushes that were made since. `keys`: of all rows of the message.
  void TakeBackBlock(std::uint64_t block, const RefusedPush& push) {
    blocks_.TakeBack(block, push);
  }
  void TakeBackRows(std::uint32_t shard, std::span<const std::uint64_t> keys,
                    const RefusedPush& push) {
    rows_.TakeBack(shard, keys, push);
  }

  // The residual of an element of a dense block, times the learning rate of the block's last push.
  double Kept(std::uint64_t block, std::uint64_t element) const {
    return blocks_.Kept(block, element);
  }
  // Everything that is kept, for another worker to take over later. Take replaces what is here with
  // what CheckSaved accepts.
  SavedTable Save() const;
  // INVALID_ARGUMENT: it is of another table, or of one with other blocks or rows.
  absl::Status CheckSaved(const SavedTable& saved) const;
  void Take(const SavedTable& saved);

  const std::string& table_name() const { return spec_.name; }
  // ‖e‖₂ of everything that is kept.
  double ResidualNorm() const;

 private:
  const TableSpec spec_;
  BlockEncoder blocks_;
  RowEncoder rows_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_PUSH_ENCODER_H_
