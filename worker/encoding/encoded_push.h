// Types and helpers of the encoders of pushes: an encoded push, and the record by which a refused
// one is taken back.
#ifndef LEEWAY_WORKER_ENCODING_ENCODED_PUSH_H_
#define LEEWAY_WORKER_ENCODING_ENCODED_PUSH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compress/kernels/kernels.h"
#include "compress/table_codec.h"
#include "leeway/table_spec.h"
#include "runtime/base/random.h"
#include "runtime/memory/buffer.h"

namespace leeway::worker {

// The state that a push has changed.
struct PushTraces {
  std::uint32_t choice = 0;  // of the table's codecs
  std::uint64_t step = 0;    // pushes of the block with traces up to this one
  bool residual = false;     // the residual was sent with it, or has what it dropped
};

// A values frame: of `codec`, or plain values where that is 0. Empty: the given values are sent
// unchanged.
struct EncodedValues {
  compress::CodecId codec = compress::kNoCodec;
  runtime::Buffer bytes = {};
  std::optional<PushTraces> traces = {};  // none: no kept state has changed
};

// The values frame of rows (compress/sparse/coded_rows.h).
struct EncodedRows {
  EncodedValues values;
  // Keys of the rows at the end of the frame that the user has not pushed: residuals that had to
  // make room.
  std::vector<std::uint64_t> flushed;
  runtime::Buffer given;  // the rows as given; empty where `values` has no traces
};

// A push that servers have refused for good: nothing of it was applied, or ever will be.
struct RefusedPush {
  PushTraces traces;
  compress::CodecId codec = compress::kNoCodec;
  // Its values frame: of `codec`, or values of the table's dtype.
  std::span<const std::byte> message;
  // The values that the user pushed, of the table's dtype. Null if it is not there any more: then
  // it stays in the residual, and is sent with a later push.
  const std::byte* given = nullptr;
  std::uint64_t elements = 0;
  std::optional<double> learning_rate;
};

// The table, the worker and the cluster that pushes are encoded for.
struct PushContext {
  std::uint32_t table = 0;
  std::uint32_t rank = 0;  // of the worker; random choices of workers differ by it
  std::uint32_t num_shards = 1;
  std::uint64_t block_bytes = 0;         // LEEWAY_BLOCK_BYTES
  std::uint64_t residual_bytes_max = 0;  // of the rows of a sparse table
};

// The kernels that add up pushes and look for their largest values.
inline const compress::ReduceKernels& Reduce() { return compress::ChosenKernels().reduce; }

// The learning rate of a push to the table: the given one, or the updater's; 1 for updaters without
// a learning rate.
inline double RateOf(const TableSpec& spec, std::optional<double> learning_rate) {
  if (spec.updater.name == "add" || spec.updater.name == "assign") return 1;
  if (learning_rate.has_value()) return *learning_rate;
  const auto found = spec.updater.parameters.find("learning_rate");
  return found == spec.updater.parameters.end() ? 1 : found->second;
}

// The seed of a message's random choices: of the message number `step` of a block or shard.
inline std::uint64_t SeedOf(const PushContext& context, std::uint64_t index, std::uint64_t step) {
  return runtime::RandomAt(std::uint64_t{context.table} << 32 | context.rank, index, step);
}

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ENCODING_ENCODED_PUSH_H_
