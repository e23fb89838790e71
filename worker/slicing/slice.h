// From a user's arrays to requests: a tensor is cut into blocks, keys are sorted, made unique and
// grouped by shard. Pure functions; they need neither the loop nor its lock.
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
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/free_list.h"
#include "worker/encoding/push_encoder.h"
#include "worker/slicing/table_info.h"
#include "worker/slicing/user_memory.h"

namespace leeway::worker {

// What the user asked for, as plain values.
struct Access {
  std::shared_ptr<const TableInfo> table;
  TableKind kind = TableKind::kDense;  // which of the calls of leeway::Table was made
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

// What it takes to take back an encoded push that servers refuse (push_encoder.h).
struct Refundable {
  PushTraces traces;
  runtime::Buffer given;  // the values that the user pushed; empty once they are the user's again
  std::optional<double> learning_rate;
};

// One request's share.
struct Piece {
  std::uint32_t shard = 0;
  std::uint64_t block = 0;           // dense
  std::uint64_t keys = 0;            // sparse, ragged
  std::uint64_t elements = 0;        // in the values frame, or (dense pull) expected
  std::uint64_t reply_elements = 0;  // what a pull is answered with; unknown for ragged
  std::uint32_t codec = 0;           // of the values frame; 0: values as they are
  absl::InlinedVector<runtime::Buffer, 3> payload = {};
  std::unique_ptr<Refundable> refundable = nullptr;  // of a push that has changed what is kept
};

// Most operations have one.
using Pieces = std::vector<Piece, runtime::Recycled<Piece>>;

// How a push is meant: the iteration that it belongs to, and its learning rate; none: the table's.
struct PushTerms {
  std::uint64_t clock = 0;
  std::optional<double> learning_rate = {};
};

// Where the values of a push come from, if they are gathered only when a piece is about to leave:
// the first ones are under way then while the next are gathered, and what was just written is still
// in the cache when the transport reads it.
class PushSource {
 public:
  virtual ~PushSource() = default;
  // Makes the values frame of `piece`, which is number `index`. To be called once for each piece
  // before its payload is read, while the user's memory is still exported.
  virtual void Fill(std::size_t index, const PushTerms& terms, Piece* piece) = 0;
};

// Where the values of a pull go.
class PullSink {
 public:
  virtual ~PullSink() = default;
  // Where all of the reply to piece `index` goes, as it is; null: there is no such place. Take is
  // called all the same.
  virtual std::byte* Place(std::size_t /*index*/) { return nullptr; }
  // The reply to piece `index`: its payload's sizes are those the piece asked for, or it is coded.
  // An error where that cannot be decoded.
  virtual absl::Status Take(std::size_t index, const proto::Reply& reply,
                            std::span<const runtime::Buffer> payload) = 0;
  // All pieces have been taken.
  virtual void Finish() {}
};

struct Sliced {
  // Fills all pieces now, as pushed in the first iteration with the table's learning rate.
  void Fill();

  std::shared_ptr<const TableInfo> table;
  proto::Op op = proto::Op::kPush;
  Pieces pieces = {};
  std::unique_ptr<PushSource> source = nullptr;  // pushes whose pieces are still to be filled
  std::unique_ptr<PullSink> sink = nullptr;      // pulls
  UserMemoryHold memory = {};                    // where pieces point into the user's memory
};

// INVALID_ARGUMENT for what cannot be: lengths, dtype, kind of table, repeated ragged keys.
absl::StatusOr<Sliced> Slice(const Access& access, const std::shared_ptr<Poster>& poster);

// The three kinds of table; what Slice has checked holds.
absl::StatusOr<Sliced> SliceDense(const Access& access, const std::shared_ptr<Poster>& poster);
absl::StatusOr<Sliced> SliceSparse(const Access& access);
absl::StatusOr<Sliced> SliceRagged(const Access& access);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_SLICE_H_
