// Slicing: cuts a user's arrays into pieces, one for each request. A tensor is cut into blocks;
// keys are sorted, made unique and grouped by shard. Pure functions, which need neither the loop
// nor its lock.
#ifndef LEEWAY_WORKER_SLICING_SLICE_H_
#define LEEWAY_WORKER_SLICING_SLICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/free_list.h"
#include "worker/encoding/push_encoder.h"
#include "worker/slicing/table_info.h"
#include "worker/slicing/user_memory.h"

namespace leeway::worker {

// The arguments of a user's call.
struct Access {
  std::shared_ptr<const TableInfo> table;
  TableKind kind = TableKind::kDense;  // of tables that the call is for
  proto::Op op = proto::Op::kPush;
  DType dtype = DType::kFloat32;
  std::span<const std::uint64_t> keys;                  // sparse, ragged
  std::span<const std::uint32_t> widths;                // ragged push
  const void* values = nullptr;                         // push
  std::size_t size = 0;                                 // elements
  void* result = nullptr;                               // dense and sparse pull
  std::size_t result_size = 0;                          // elements
  std::vector<std::uint32_t>* result_widths = nullptr;  // ragged pull
  std::function<void*(std::size_t elements)> resize;    // ragged pull: makes room for the values
  bool copy = false;
};

// A record of an encoded push by which PushEncoder takes it back if servers refuse it.
struct Refundable {
  PushTraces traces;
  runtime::Buffer given;  // the values that the user pushed; empty once the user may change them
  std::optional<double> learning_rate;
};

// The part of an operation that one request carries.
struct Piece {
  std::uint32_t shard = 0;
  std::uint64_t block = 0;           // dense
  std::uint64_t keys = 0;            // sparse, ragged
  std::uint64_t elements = 0;        // in the values frame, or (dense pull) expected
  std::uint64_t reply_elements = 0;  // of the answer to a pull; unknown for ragged
  std::uint32_t codec = 0;           // of the values frame; 0: values as they are
  bool rows_wrapped = false;         // proto::Request::rows_wrapped
  std::uint64_t publication = 0;     // pull: proto::Request::publication
  std::uint64_t have = 0;            // of a publication: proto::Request::have
  absl::InlinedVector<runtime::Buffer, 3> payload = {};
  std::unique_ptr<Refundable> refundable = nullptr;  // of a push that has changed kept state
};

// Of one operation, which mostly has one piece.
using Pieces = std::vector<Piece, runtime::Recycled<Piece>>;

// The clock that a push belongs to, and its learning rate; none: the table's.
struct PushTerms {
  std::uint64_t clock = 0;
  std::optional<double> learning_rate = {};
};

// The source of the values of a push that are gathered or encoded only when a piece is about to be
// sent: the first pieces are under way while the next are gathered, and the values just written are
// still in the cache when the transport reads them.
class PushSource {
 public:
  virtual ~PushSource() = default;
  // Makes the values frame of `piece`, which is number `index`. Called once for each piece, before
  // its payload is read and while the user's memory is exported.
  virtual void Fill(std::size_t index, const PushTerms& terms, Piece* piece) = 0;
};

// The destination of the values of a pull.
class PullSink {
 public:
  virtual ~PullSink() = default;
  // The memory that the reply to piece `index` may be received straight into; null: there is none.
  // Take is called in either case.
  virtual std::byte* Place(std::size_t /*index*/) { return nullptr; }
  // Takes the reply to piece `index`, whose payload has the sizes that the piece asked for, or is
  // encoded. An error if it cannot be decoded.
  virtual absl::Status Take(std::size_t index, const proto::Reply& reply,
                            std::span<const runtime::Buffer> payload) = 0;
  // Called once all pieces have been taken.
  virtual void Finish() {}
};

struct Sliced {
  // Fills all pieces now, as pushes of clock 0 with the table's learning rate.
  void Fill();

  std::shared_ptr<const TableInfo> table;
  proto::Op op = proto::Op::kPush;
  Pieces pieces = {};
  std::unique_ptr<PushSource> source = nullptr;   // of pushes whose pieces are still to be filled
  std::unique_ptr<PullSink> sink = nullptr;       // pulls
  std::optional<std::uint64_t> wrapped_key = {};  // the first, of pieces with rows_wrapped
  UserMemoryHold memory = {};                     // where pieces point into the user's memory
};

// INVALID_ARGUMENT for wrong lengths, dtype or kind of table, and for repeated ragged keys.
absl::StatusOr<Sliced> Slice(const Access& access, const std::shared_ptr<Poster>& poster);

// A call of a shard handler: of one shard, or of each shard that has a part of the table. Copies
// both texts. `key`: dense: an element. `sink` takes the answers, in the order of shards.
// INVALID_ARGUMENT, OUT_OF_RANGE: a name, a request or an element that there may not be.
absl::StatusOr<Sliced> SliceCall(std::shared_ptr<const TableInfo> table,
                                 std::optional<std::uint64_t> key, absl::string_view handler,
                                 absl::string_view request, std::unique_ptr<PullSink> sink);

// The three kinds of table, for arguments that Slice has checked.
absl::StatusOr<Sliced> SliceDense(const Access& access, const std::shared_ptr<Poster>& poster);
absl::StatusOr<Sliced> SliceSparse(const Access& access);
absl::StatusOr<Sliced> SliceRagged(const Access& access);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_SLICE_H_
