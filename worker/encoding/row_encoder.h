// The encoder of pushes to a sparse table, and the keeper of what a lossy codec drops of each row.
//
// Feedback works as for blocks (block_encoder.h), but for one thing: residuals of rows are kept
// times the learning rate, since each row was last pushed at another time. Their memory is bounded
// (residual_rows.h): where it is full, the rows that were used longest ago are sent with a push.
//
// Owned by PushEncoder; lives on the worker's loop.
#ifndef LEEWAY_WORKER_ENCODING_ROW_ENCODER_H_
#define LEEWAY_WORKER_ENCODING_ROW_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "worker/encoding/encoded_push.h"
#include "worker/encoding/residual_file.h"
#include "worker/encoding/residual_rows.h"

namespace leeway::worker {

class RowEncoder {
 public:
  // `codecs` outlive this.
  RowEncoder(const TableSpec& spec, const compress::TableCodecs* codecs,
             const PushContext& context);

  // As PushEncoder::EncodeRows and TakeBackRows.
  EncodedRows Encode(std::uint32_t choice, std::uint32_t shard, std::span<const std::uint64_t> keys,
                     std::byte* rows, std::optional<double> learning_rate);
  void TakeBack(std::uint32_t shard, std::span<const std::uint64_t> keys, const RefusedPush& push);

  // Sets keys, rows and steps.
  void Save(SavedTable* saved) const;
  // Replaces everything that is kept.
  void Take(const SavedTable& saved);
  // ‖e‖₂² of all rows.
  double SumOfSquares() const;

 private:
  struct ShardState {
    ResidualRows residuals;
    std::uint64_t step = 0;
  };

  ShardState& StateOf(std::uint32_t shard);
  bool AddResiduals(std::span<const std::uint64_t> keys, double rate, ShardState* state,
                    float* rows) const;
  std::vector<float> FloatsOfMessage(const RefusedPush& push, std::uint64_t rows) const;

  const TableSpec spec_;
  const compress::TableCodecs* const codecs_;
  const PushContext context_;
  const std::uint64_t shard_bytes_max_;
  std::map<std::uint32_t, ShardState> shards_;
  std::vector<std::byte> encoded_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_ROW_ENCODER_H_
