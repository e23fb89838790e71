// The store of one table's part in one shard: values and optimiser state. Lives on the data
// thread's loop. Knows no network, no clocks and no workers: ps/shard decides what reaches it and
// when.
#ifndef LEEWAY_PS_STORE_SHARD_STORE_H_
#define LEEWAY_PS_STORE_SHARD_STORE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/codec_schedule.h"
#include "leeway/table_spec.h"
#include "leeway/updater.h"
#include "proto/messages/messages.h"
#include "ps/store/frozen_piece.h"
#include "ps/store/memory/table_memory.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

class BlockPool;

// A push, as it lies in its message: sizes already agree with each other (proto::Decode), but not
// yet with the table. Buffers are shared, so a view may be kept.
struct PushView {
  std::uint64_t block = 0;      // dense
  runtime::Buffer keys = {};    // sparse, ragged: [n] uint64
  runtime::Buffer widths = {};  // ragged: [n] uint32, elements a row
  runtime::Buffer values = {};  // elements of the table's dtype, or what `codec` made of them
  double learning_rate = std::numeric_limits<double>::quiet_NaN();  // NaN: the table's
  std::uint32_t codec = 0;  // compress::CodecId; 0: values are as they are
};

// The sum of the pushes of one BSP clock to one dense block, or to a sparse or ragged shard:
// summed, divided where the table asks for the mean, or the last one (Updater::combine).
struct AggregatedPush {
  std::uint64_t block = 0;      // dense
  runtime::Buffer keys = {};    // sparse, ragged: [n] uint64, none twice
  runtime::Buffer widths = {};  // ragged: [n] uint32
  runtime::Buffer values = {};  // elements of ComputeDType(the table's dtype)
  double learning_rate = std::numeric_limits<double>::quiet_NaN();  // as in PushView
};

struct PullView {
  std::uint64_t block = 0;
  std::uint64_t elements = 0;  // dense: what the reader expects
  runtime::Buffer keys = {};
  std::uint64_t have = 0;                     // dense: the version that the reader holds; 0: none
  bool plain = false;                         // the values as they are, whatever the codec
  bool own_push = false;                      // what the reader has pushed along is to be seen
  compress::CodecSchedule::Known codec = {};  // of the table, where the slowest worker is
};

// How workers get a new state of a dense block: by a message of `codec`
// (compress::CodecId), or the block itself, or (neither) they are not sent messages now.
struct VersionBy {
  std::uint32_t codec = 0;
  bool whole = false;
};

// The terms, beside what a reader holds, on which a version is made for it.
struct ReaderTerms {
  std::uint64_t needed = 0;   // the table allows it to miss what was pushed from that clock on
  std::uint64_t slowest = 0;  // clock of the slowest living worker
  std::uint64_t workers = 1;  // living
};

// The values of a reply, in wire order: ragged: widths, values; otherwise: values.
struct PullResult {
  absl::InlinedVector<runtime::Buffer, 2> payload;
  std::uint64_t keys = 0;
  std::uint64_t elements = 0;
  // Encoded: the only frame holds `parts`, one after the other.
  bool coded = false;
  std::vector<proto::ReplyPart> parts = {};
  // If the values are of an earlier time: the clock of the slowest worker then.
  std::optional<std::uint64_t> slowest = std::nullopt;
  std::uint64_t digest = 0;  // proto::Reply::digest
};

// A dense block with its feedback slot (ps/store/feedback.h), to be changed without an update.
struct FeedbackBlock {
  const std::byte* values = nullptr;  // of the table's dtype
  std::byte* writable = nullptr;      // the same, where it was asked for
  float* slot = nullptr;              // null: the table has none
  std::uint64_t elements = 0;
  std::uint64_t steps = 0;
};

struct StoreStats {
  std::uint64_t rows = 0;         // sparse, ragged
  std::uint64_t blocks = 0;       // dense
  std::uint64_t value_bytes = 0;  // values and state, exactly
  // All that is allocated for them: keys, index, state and what encoded replies need as well.
  std::uint64_t memory_bytes = 0;
  std::uint64_t copies_on_write = 0;  // of blocks or rows that a snapshot or reader still had
  // Of what encoded replies hold back: the square of the norm of a gradient table's residuals,
  // times their learning rates, or of values minus what workers hold, as the last versions left it.
  double feedback_squares = 0;
};

// Lives on one data thread. What a Pull returned stays as it was, whatever is pushed later
// (dense: the block is frozen and the next push writes a copy; sparse: rows are gathered), and so
// does what Freeze returned, even when the store is gone.
//
// The content of a store is the values, state and steps of the rows and blocks that were ever
// pushed to or loaded; all others are as the initializer says. Two stores of equal content answer
// every pull and take every push alike, bit by bit.
class ShardStore {
 public:
  virtual ~ShardStore() = default;

  // Whether the push fits the table: block in this shard and in range, lengths, widths. Changes
  // nothing; a push that passed can be applied at any later time (ragged: unless a row's width
  // has changed meanwhile, which Apply reports).
  // INVALID_ARGUMENT / OUT_OF_RANGE, naming the table, what was given and what it has.
  virtual absl::Status Check(const PushView& push) const = 0;

  // Whether the tables of the server may take what the push would add. What passed may be applied
  // at any later time; Apply and ApplyAggregate do not ask. RESOURCE_EXHAUSTED.
  virtual absl::Status CheckMemory(const PushView& /*push*/) const { return absl::OkStatus(); }

  // Whether an encoded push, which passed Check, holds NaN or infinity.
  virtual absl::StatusOr<bool> EncodedNonFinite(const PushView& /*push*/) const { return false; }

  // Whether the push, as one update of its own, would leave 16-bit values that are NaN or infinite,
  // or make integers wrap around. Changes nothing. An error: it does not fit (Check).
  virtual absl::StatusOr<bool> WouldOverflow(const PushView& push) const = 0;
  // The same of a sum of pushes.
  virtual absl::StatusOr<bool> SumWouldOverflow(const AggregatedPush& sum) const = 0;
  // Whether an update has since the last call.
  virtual bool TakeOverflow() { return std::exchange(overflowed_, false); }

  // From now on updates are made by `updater`, of the same kind with the same state, and with the
  // rates of `spec`: of the same table with other settings
  // (proto/messages/table_settings_schedule.h).
  virtual void UseSettings(const TableSpec& spec, const Updater* updater) = 0;

  // Checks and applies one push. Where there is no memory std::bad_alloc is thrown; nothing of a
  // dense push is applied then, and whole rows of others.
  virtual absl::Status Apply(const PushView& push) = 0;
  // The same; tells as well whether the push holds NaN or infinity. Where that keeps nobody from
  // applying it, to look meanwhile costs less than to look first.
  virtual absl::Status Apply(const PushView& push, bool* nonfinite) = 0;

  // BSP: all pushes of one clock, in worker order. Combined first as the updater says
  // (Updater::combine; the mean where the table asks for it, over `contributors` workers), in the
  // order given, then applied as one update per block or row. Dense: all views are of one block.
  // The same pushes in the same order give the same bits.
  virtual absl::Status ApplyCombined(std::span<const PushView> pushes,
                                     std::uint32_t contributors) = 0;

  // ApplyCombined in two steps, so that replicas need not see the pushes themselves: Combine
  // changes nothing, and ApplyAggregate with what it gave, here or on a store of equal content,
  // leaves the bits that ApplyCombined would have left. An aggregate may come from a peer: all of
  // it is checked, and what does not fit is refused as by Check.
  virtual absl::StatusOr<AggregatedPush> Combine(std::span<const PushView> pushes,
                                                 std::uint32_t contributors) const = 0;
  virtual absl::Status ApplyAggregate(const AggregatedPush& aggregate) = 0;

  virtual absl::StatusOr<PullResult> Pull(const PullView& pull) = 0;

  // The content as it is now, without copying it: pushes go on, and write a copy of a block (both
  // its values and its state) or of a row for as long as its piece exists. Takes time in
  // proportion to the number of pieces, of which a full one has a dense block or 256 KiB of rows.
  StoreSnapshot Freeze() { return FreezeSince(0); }

  // Only the pieces that were written to since the Freeze of this store that gave `generation`.
  // Loaded in order on top of that one's pieces, they make the content of now. 0: all.
  virtual StoreSnapshot FreezeSince(std::uint64_t generation) = 0;

  // Puts a piece into the content, in place of what its rows or block were before. The piece is of
  // a store of the same table, shard, number of shards and block size. INVALID_ARGUMENT or
  // OUT_OF_RANGE, and nothing has changed, if it is not whole, or has a row or block of another
  // shard.
  virtual absl::Status Load(const FrozenPiece& piece) = 0;

  // As Load, from a store with any number of shards: takes the rows or the block that belong here
  // and tells how many those were. `block_bytes` is that of the piece's store; a dense block of
  // another size than here is refused, as its steps would not be those of one block any more.
  virtual absl::StatusOr<std::uint64_t> LoadElsewhere(const FrozenPiece& piece,
                                                      std::uint64_t block_bytes) = 0;

  // ---- dense tables whose replies are encoded (ps/store/dense/dense_stores.h); of others nothing
  // happens

  // Whether a new version of the block has to be made before such a pull is answered. Replicas make
  // theirs when they are told.
  virtual bool WantsVersion(const PullView& /*pull*/, const ReaderTerms& /*terms*/) {
    return false;
  }
  // The slowest clock that is known went back (a worker that was not waited for is waited for
  // again, or another replica has become the head): what versions were known to have of all clocks
  // does not hold, and the next reader of each block gets a new version.
  virtual void ForgetSlowest() {}
  // The way in which the block's next version is made, when the slowest worker is at clock
  // `slowest`: the head asks, and the log tells the replicas.
  virtual VersionBy NextVersion(std::uint64_t /*block*/, const compress::CodecSchedule& /*codecs*/,
                                std::uint64_t /*slowest*/) {
    return {};
  }
  // Makes one: of the state as it is, when the slowest worker is at clock `slowest`.
  // `learning_rate`: of the clock that has closed; NaN: the table's. INVALID_ARGUMENT: `by` names
  // no codec of the table.
  virtual absl::Status MakeVersion(std::uint64_t /*block*/, std::uint64_t /*slowest*/,
                                   double /*learning_rate*/, const VersionBy& /*by*/) {
    return absl::OkStatus();
  }
  // No worker holds anything of the block: replies begin with its values as they are.
  virtual absl::Status BeginReplies(std::uint64_t /*block*/) { return absl::OkStatus(); }
  // The block's slot, and its values to write to if `write_values`. Valid until the next call. Of a
  // store that is not dense: FAILED_PRECONDITION.
  virtual absl::StatusOr<FeedbackBlock> OpenFeedback(std::uint64_t block, bool write_values);
  // The slot as it is now.
  virtual absl::StatusOr<runtime::Buffer> FeedbackView(std::uint64_t block);
  // The number of updates of the block; none if it does not exist.
  virtual std::uint64_t StepsOf(std::uint64_t /*block*/) const { return 0; }

  virtual StoreStats stats() const = 0;

  // Of the content: equal if the content is, whatever led to it. Reads all of it.
  std::uint64_t Digest() { return ps::Digest(Freeze().pieces); }

 protected:
  // As TakeOverflow tells. Combine, which changes nothing, adds up as well.
  mutable bool overflowed_ = false;
};

// The shard, the table and the cluster that a store is of, and the memory that it takes.
struct StoreContext {
  std::uint32_t table = 0;
  std::uint32_t shard = 0;
  std::uint32_t num_shards = 1;
  std::uint64_t block_bytes = 0;  // the cluster's: LEEWAY_BLOCK_BYTES
  // Most bytes one pull of keys may gather: what one frame may hold.
  std::uint64_t pull_bytes_max = 1ull << 30;  // LEEWAY_MESSAGE_BYTES_MAX
  BlockPool* pool = nullptr;                  // outlives the store; null: all is from the heap
  TableMemory* memory = nullptr;              // outlives the store; null: nobody counts
  // The seed of the hash of keys. Changes no result; a user that chooses keys must not know it.
  std::uint64_t hash_seed = 0;
};

// The updater a description asks for, or why there is none: NOT_FOUND names the known ones,
// INVALID_ARGUMENT an unknown hyper-parameter, a value out of range or an unsupported dtype.
absl::StatusOr<std::unique_ptr<Updater>> MakeUpdater(const TableSpec& spec);

// Whether any element is NaN or infinite. Integers never are.
bool HasNonFinite(DType dtype, std::span<const std::byte> values);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_SHARD_STORE_H_
