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
#include "runtime/memory/free_list.h"
#include "van/posted_receive.h"
#include "worker/operations/operation.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {

struct Request {
  enum class State {
    kQueued,   // stands in its link's queue
    kSent,     // waits for its answer, or to be resent
    kWaiting,  // for a newer map, for the end of a back-off or for its link to come up
    kKept,     // retained, and its shard's head has it
  };

  static void* operator new(std::size_t) { return runtime::Recycled<Request>::List::Take(); }
  static void operator delete(void* memory) { runtime::Recycled<Request>::List::Give(memory); }

  bool held() const { return table->spec.consistency.is_bsp(); }  // its class (requests.h)

  // Null once the operation has ended: with the answer (`retained`) or without (`abandoned`).
  std::shared_ptr<Operation> operation;
  // Its time was up before it was answered. Its number is in use, so it is asked on, with a copy
  // of the user's data, until it is answered.
  bool abandoned = false;
  // A push that was accepted, but is nowhere but at the head of its shard until its clock has
  // closed. Kept, with a copy of the user's data, to be sent again to the next head.
  bool retained = false;
  std::size_t index = 0;  // of its piece
  Piece piece;
  bool filled = false;      // its payload; false only as long as its operation goes on
  std::uint64_t bytes = 0;  // payload

  // The user's array, posted for the answer where that may be received straight into it. Goes
  // before `operation`, which holds that array.
  van::ReceiveHandle receive;

  std::shared_ptr<const TableInfo> table;
  proto::Op op = proto::Op::kPush;
  std::uint64_t clock = 0;
  std::optional<double> learning_rate;
  absl::Time deadline;

  std::uint64_t sequence = 0;  // 0: none yet
  Request* earlier = nullptr;  // of its shard and class that is not settled
  Request* later = nullptr;
  std::uint64_t order = 0;  // of submission, then of numbering, over all shards
  int priority = 0;         // raised to that of any later one that has to wait for it

  State state = State::kQueued;
  bool in_flight = false;  // its bytes count against its link's
  int times_sent = 0;
  std::uint64_t epoch_sent = 0;
  absl::Time first_sent;
  absl::Time due;  // to be sent again
  absl::Duration resend_delay;
  absl::Duration back_off;
};

// Of the same priority what has a number goes first: a server lets what comes after it wait for it,
// and what waits there may be all that the window holds.
struct SentSooner {
  bool operator()(const Request* a, const Request* b) const {
    if (a->priority != b->priority) return a->priority > b->priority;
    const bool numbered = a->sequence > 0;
    return numbered != (b->sequence > 0) ? numbered : a->order < b->order;
  }
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_OPERATIONS_REQUEST_H_
