// One request to one shard: a piece of an operation, from its submission until it is settled.
//
// Lives on the core's loop, in the queue of its shard (requests/shard_queue.h).
#ifndef LEEWAY_WORKER_OPERATIONS_REQUEST_H_
#define LEEWAY_WORKER_OPERATIONS_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "runtime/memory/free_list.h"
#include "van/posted_receive.h"
#include "worker/operations/operation.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {

struct Request {
  enum class State {
    kQueued,    // in its link's queue, to be sent
    kSent,      // waits for its answer, or to be resent
    kWaiting,   // for a newer map, for the end of a back-off or for its link to come up
    kRetained,  // the worker keeps it, and the head of its shard has it
  };

  static void* operator new(std::size_t) { return runtime::Recycled<Request>::List::Take(); }
  static void operator delete(void* memory) { runtime::Recycled<Request>::List::Give(memory); }

  // Its class (shard_queue.h). What a handler changes is not held, whatever table it is called at.
  bool held() const { return op != proto::Op::kCall && table->spec.consistency.is_bsp(); }
  // Copies the payload, so that the operation can give the user's memory back.
  void CopyPayload() {
    for (runtime::Buffer& frame : piece.payload) {
      frame = runtime::Buffer::CopyOf(frame.data(), frame.size());
    }
  }

  // Null once the operation has ended: with the answer (`retained`) or without (`abandoned`).
  std::shared_ptr<Operation> operation;
  // Its operation ended before it was answered. Its number is in use, so it is still sent, with a
  // copy of the user's data, until it is answered.
  bool abandoned = false;
  // A push that was accepted provisionally: only the head of its shard has it until its clock has
  // closed. It stays here, with a copy of the user's data, to be sent to the next head.
  bool retained = false;
  std::size_t index = 0;  // of its piece in the operation
  Piece piece;
  bool filled = false;      // the payload is made; false only while the operation goes on
  std::uint64_t bytes = 0;  // payload

  // The user's array, posted as the receive buffer for the answer where possible. Is destroyed
  // before `operation`, which keeps that array in use.
  van::ReceiveHandle receive;

  std::shared_ptr<const TableInfo> table;
  proto::Op op = proto::Op::kPush;
  std::uint64_t clock = 0;
  std::optional<double> learning_rate;
  std::uint64_t read_updates = 0;  // proto::Request::read_updates
  absl::Time deadline;

  std::uint64_t sequence = 0;  // its number; 0: none yet
  Request* earlier = nullptr;  // the previous unsettled request of its shard and class
  Request* later = nullptr;
  std::uint64_t order = 0;  // of submission, then of numbering, over all shards
  int priority = 0;         // at least that of each later request that has to wait for it

  State state = State::kQueued;
  bool in_flight = false;  // its bytes count against its link's
  int times_sent = 0;
  std::uint64_t epoch_sent = 0;
  absl::Time first_sent;
  absl::Time due;  // to be sent again
  absl::Duration resend_delay;
  absl::Duration back_off;
};

// The order of a link's queue: by priority, then by whether the request has a number, then by age.
// A numbered request goes before one without, because the server makes all later numbers wait for
// it, and these may fill the whole send window.
struct SentSooner {
  bool operator()(const Request* a, const Request* b) const {
    if (a->priority != b->priority) return a->priority > b->priority;
    const bool numbered = a->sequence > 0;
    return numbered != (b->sequence > 0) ? numbered : a->order < b->order;
  }
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_OPERATIONS_REQUEST_H_
