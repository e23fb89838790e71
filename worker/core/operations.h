// The operations of a worker that are not over: each from its submission to its completion.
//
// An operation has its result when all its requests are answered, when its deadline has passed, or
// when the worker ends. It completes as soon as no transport reads the user's memory any more: if a
// peer takes nothing in, the connections that read it are dropped.
//
// Lives on the core's loop, in Core. Completions are called on it, possibly from within Submit.
#ifndef LEEWAY_WORKER_CORE_OPERATIONS_H_
#define LEEWAY_WORKER_CORE_OPERATIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "worker/control/scheduler_requests.h"
#include "worker/core/staleness.h"
#include "worker/links/servers.h"
#include "worker/operations/due_operations.h"
#include "worker/operations/operation.h"
#include "worker/requests/requests.h"
#include "worker/slicing/slice.h"

namespace leeway::worker {

class Operations final : public Requests::Listener {
 public:
  // How an operation is meant.
  struct Terms {
    std::optional<absl::Duration> timeout = {};  // none: Config::request_timeout
    std::optional<double> learning_rate = {};
    int priority = 0;
  };

  Operations(const Config& config, runtime::Loop* loop);

  // Once, before Submit: what operations are carried out with. All pointers outlive this.
  void Connect(Servers* servers, Requests* requests, SchedulerRequests* scheduler_requests);
  // The newest map, of an epoch above 0.
  void Follow(std::shared_ptr<const proto::ClusterMap> map) { map_ = std::move(map); }

  // Submits an operation in `clock`; after Follow.
  std::shared_ptr<Operation> Submit(Sliced&& sliced, std::uint64_t clock, const Terms& terms,
                                    Operation::Completion completion);
  // An operation that completes at once with an error.
  std::shared_ptr<Operation> Refuse(absl::Status why, Operation::Completion completion);

  // Requests::Listener
  void OnAnswer(Request& request, const Link& link, const proto::Reply& reply,
                std::span<runtime::Buffer> payload) override;
  // Ends the operation, unless it has its result: UNKNOWN where a part of its push may be applied.
  void GiveUp(const std::shared_ptr<Operation>& operation, absl::Status why);
  // Ends operations whose shards are lost.
  void FailLost(const std::vector<Failover::Lost>& lost);
  // Ends all operations and forgets all requests: the worker is over.
  void End(const absl::Status& why);
  // After End: completes the operations whose memory is still read; the network is gone.
  void Stop();

  const StalenessLedger& staleness() const { return staleness_; }
  std::uint64_t bytes_pulled() const { return bytes_pulled_; }
  std::uint64_t parts_dropped() const { return parts_dropped_; }

 private:
  std::shared_ptr<Operation> New(Operation::Completion completion);
  absl::Status Check(const Sliced& sliced, const Terms& terms, absl::Duration timeout) const;
  absl::Status TakeAnswer(const Request& request, Operation* operation, const proto::Reply& reply,
                          std::span<runtime::Buffer> payload);
  void Fail(const std::shared_ptr<Operation>& operation, absl::Status why);
  void FinishNamingSilentWorkers(const std::shared_ptr<Operation>& operation);
  void Finish(const std::shared_ptr<Operation>& operation);
  void Complete(const std::shared_ptr<Operation>& operation);
  void SetDue(const std::shared_ptr<Operation>& operation, absl::Time now, absl::Duration after);
  void OnDeadlines();
  void OnOverdue(const std::shared_ptr<Operation>& operation);
  void BreakOff(const Operation& operation);

  const Config& config_;  // the core's
  runtime::Loop* const loop_;
  Servers* servers_ = nullptr;
  Requests* requests_ = nullptr;
  SchedulerRequests* scheduler_requests_ = nullptr;
  std::shared_ptr<const proto::ClusterMap> map_;
  std::uint64_t next_number_ = 1;
  bool over_ = false;
  StalenessLedger staleness_;
  std::uint64_t bytes_pulled_ = 0;
  std::uint64_t parts_dropped_ = 0;  // WorkerStats::parts_dropped
  DueOperations due_;
  runtime::Timer deadlines_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CORE_OPERATIONS_H_
