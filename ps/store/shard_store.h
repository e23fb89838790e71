// What one shard holds of one table: values and optimiser state. Knows no network, no clocks and
// no workers; consistency decides what reaches it and when (ps/data).
#ifndef LEEWAY_PS_STORE_SHARD_STORE_H_
#define LEEWAY_PS_STORE_SHARD_STORE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "runtime/buffer.h"

namespace leeway::ps {

// A push, as it lies in its message: sizes already agree with each other (proto::Decode), but not
// yet with the table. Buffers are shared, so a view may be kept.
struct PushView {
  std::uint64_t block = 0;      // dense
  runtime::Buffer keys = {};    // sparse, ragged: [n] uint64
  runtime::Buffer widths = {};  // ragged: [n] uint32, elements a row
  runtime::Buffer values = {};  // elements of the table's dtype
  double learning_rate = std::numeric_limits<double>::quiet_NaN();  // NaN: the table's
};

struct PullView {
  std::uint64_t block = 0;
  std::uint64_t elements = 0;  // dense: what the reader expects
  runtime::Buffer keys = {};
};

// What goes into a reply, in wire order: ragged: widths, values; otherwise: values.
struct PullResult {
  absl::InlinedVector<runtime::Buffer, 2> payload;
  std::uint64_t keys = 0;
  std::uint64_t elements = 0;
};

struct StoreStats {
  std::uint64_t rows = 0;         // sparse, ragged
  std::uint64_t blocks = 0;       // dense
  std::uint64_t value_bytes = 0;  // values and state
  std::uint64_t copies_on_write = 0;
};

// Lives on one server thread. What a Pull returned stays as it was, whatever is pushed later
// (dense: the block is frozen and the next push writes a copy; sparse: rows are gathered).
class ShardStore {
 public:
  virtual ~ShardStore() = default;

  // Whether the push fits the table: block in this shard and in range, lengths, widths. Changes
  // nothing; a push that passed can be applied at any later time (ragged: unless a row's width
  // has changed meanwhile, which Apply reports).
  // INVALID_ARGUMENT / OUT_OF_RANGE, naming the table, what was given and what it has.
  virtual absl::Status Check(const PushView& push) const = 0;

  // Checks and applies one push.
  virtual absl::Status Apply(const PushView& push) = 0;

  // BSP: all pushes of one clock, in worker order. Combined first as the updater says
  // (Updater::combine; the mean where the table asks for it, over `contributors` workers), in the
  // order given, then applied as one update per block or row. Dense: all views are of one block.
  // The same pushes in the same order give the same bits.
  virtual absl::Status ApplyCombined(std::span<const PushView> pushes,
                                     std::uint32_t contributors) = 0;

  virtual absl::StatusOr<PullResult> Pull(const PullView& pull) = 0;

  virtual StoreStats stats() const = 0;
};

struct StorePlace {
  std::uint32_t table = 0;
  std::uint32_t shard = 0;
  std::uint32_t num_shards = 1;
  std::uint64_t block_bytes = 1 << 20;
  // Most bytes one pull of keys may gather: what one frame may hold.
  std::uint64_t pull_bytes_max = 1ull << 30;  // LEEWAY_MESSAGE_BYTES_MAX
};

// `updater` outlives the store and supports the table's dtype.
std::unique_ptr<ShardStore> NewShardStore(const TableSpec& spec, const StorePlace& place,
                                          const Updater* updater);

// The updater a description asks for, or why there is none: NOT_FOUND names the known ones,
// INVALID_ARGUMENT an unknown hyper-parameter, a value out of range or an unsupported dtype.
absl::StatusOr<std::unique_ptr<Updater>> MakeUpdater(const TableSpec& spec);

// Whether any element is NaN or infinite. Integers never are.
bool HasNonFinite(DType dtype, std::span<const std::byte> values);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SHARD_STORE_H_
