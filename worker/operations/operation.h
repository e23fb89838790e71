// One push, pull or push-pull, cut into requests: what a Ticket of the public interface refers to.
//
// Owned by shared pointers: of its requests, of the core's list of due operations, and of tickets.
// Apart from the fields that are marked otherwise it lives on the core's loop.
#ifndef LEEWAY_WORKER_OPERATIONS_OPERATION_H_
#define LEEWAY_WORKER_OPERATIONS_OPERATION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "leeway/worker.h"
#include "proto/messages/messages.h"
#include "runtime/memory/free_list.h"
#include "worker/slicing/slice.h"
#include "worker/slicing/table_info.h"
#include "worker/slicing/user_memory.h"

namespace leeway::worker {

class Operation {
 public:
  // Called once, on the loop, with `result` set. A completion has to call MarkDone.
  using Completion = absl::AnyInvocable<void(const std::shared_ptr<Operation>&)>;

  Operation() {}  // "= default" would have New() fill it with zeros first
  static std::shared_ptr<Operation> New() {
    return std::allocate_shared<Operation>(runtime::Recycled<Operation>());
  }

  // ---- Any thread ----
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Only once it is done.
  const absl::Status& status() const { return status_; }
  // The clock and version of pulled values, if `has_info`. Only once it is done.
  PullInfo info;
  bool has_info = false;
  // Once.
  void MarkDone(absl::Status status) {
    status_ = std::move(status);
    done_.store(true, std::memory_order_release);
  }
  // The operation cannot be answered before the worker's clock has reached this. Constant once
  // submitted.
  std::uint64_t clock_needed = 0;

  // ---- The core's, on its loop ----
  enum class Stage {
    kAsking,       // requests are unanswered
    kReleasing,    // the result is known; the transport may still read the user's memory
    kBreakingOff,  // that took too long: the connections are being dropped
    kOver,
  };

  // "pull of table 'w'"
  std::string Describe() const {
    const char* verb = op == proto::Op::kPush   ? "push to"
                       : op == proto::Op::kPull ? "pull of"
                       : op == proto::Op::kCall ? "call at"
                                                : "push-pull of";
    return absl::StrCat(verb, " table '", table->spec.name, "'");
  }

  std::uint64_t number = 0;  // 1, 2, … in the order of submission
  Stage stage = Stage::kAsking;
  std::shared_ptr<const TableInfo> table;
  proto::Op op = proto::Op::kPush;
  std::uint64_t clock = 0;  // the worker's when it was submitted
  absl::Time submitted;
  absl::Time deadline = absl::InfiniteFuture();
  // Its place among the due operations, if it has one (due_operations.h).
  using List = std::list<std::shared_ptr<Operation>, runtime::Recycled<std::shared_ptr<Operation>>>;
  absl::Time due;
  absl::Duration due_after;
  std::optional<List::iterator> place;
  std::size_t requests = 0;
  std::size_t unanswered = 0;
  // Requests with a push that has been sent, or will be, and that no server has refused. If there
  // are any, the operation may have been applied, at least in part.
  std::size_t pushes_out = 0;
  // Requests with a push that servers have taken, and refused.
  std::size_t pushes_taken = 0, pushes_refused = 0;
  absl::Status result;
  std::unique_ptr<PushSource> source;
  std::unique_ptr<PullSink> sink;
  UserMemoryHold memory;
  Completion completion;
  // Called without the lock once it is done. Under the lock of the session's driver.
  std::vector<std::function<void(const absl::Status&)>> when_done;

 private:
  std::atomic<bool> done_ = false;
  absl::Status status_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_OPERATIONS_OPERATION_H_
