// The requests to the scheduler that are not answered yet: for tables, barriers, checkpoints,
// status.
//
// A request is sent again until it is answered or its deadline has passed; the scheduler recognises
// it by its number. While the scheduler is away, requests wait for it. Arguments that the scheduler
// would refuse to read fail at once with INVALID_ARGUMENT. Lives on the core's loop; each `done` is
// called once, possibly from within the call.
#ifndef LEEWAY_WORKER_CONTROL_SCHEDULER_REQUESTS_H_
#define LEEWAY_WORKER_CONTROL_SCHEDULER_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "node/membership.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"

namespace leeway::worker {

class SchedulerRequests {
 public:
  using TableDone = absl::AnyInvocable<void(absl::StatusOr<proto::TableReply>)>;
  using BarrierDone = absl::AnyInvocable<void(const absl::Status&)>;
  using TextDone = absl::AnyInvocable<void(absl::StatusOr<std::string> json)>;

  SchedulerRequests(const Config& config, runtime::Loop* loop, node::Membership* membership);

  void CreateTable(const TableSpec& spec, absl::Duration timeout, TableDone done);
  void OpenTable(const std::string& name, absl::Duration timeout, TableDone done);
  void Barrier(Group group, const std::string& name, absl::Duration timeout, BarrierDone done);

  // `done` gets what the scheduler says once it is decided (ClockOfSwitch).
  void SetCodec(const std::string& table, const std::string& codec, absl::Duration timeout,
                TextDone done);
  // Likewise. `changes`: as the scheduler's command `table` takes them,
  // "updater.learning_rate=0.1".
  void ChangeTable(const std::string& table, const std::vector<std::string>& changes,
                   absl::Duration timeout, TextDone done);
  // Of a worker at `clock`. `done` gets the folder once the checkpoint is complete.
  void Checkpoint(const std::string& directory, std::uint64_t clock, absl::Duration timeout,
                  TextDone done);
  // Of a worker at `clock`.
  void Publish(const std::string& model, const std::vector<std::uint32_t>& tables,
               std::uint64_t clock, absl::Duration timeout, TextDone done);
  void DescribeModel(const std::string& model, absl::Duration timeout, TextDone done);
  void Status(absl::Duration timeout, TextDone done);

  void OnTableReply(proto::TableReply reply);
  void OnBarrierRelease(const proto::BarrierRelease& release);
  // An AdminReply or a StatusReply.
  void OnText(const proto::AnyMessage& message, absl::string_view json);
  // Ends all requests with `why`.
  void Fail(const absl::Status& why);

 private:
  struct Common {
    std::string what;
    absl::Time started, deadline, due;
    absl::Duration resend_delay;
  };
  struct TableRequest {
    Common common;
    proto::AnyMessage message;
    TableDone done;
  };
  struct TextRequest {
    Common common;
    proto::AnyMessage message;
    TextDone done;
  };
  struct BarrierRequest {
    Common common;
    absl::Time ends;  // the barrier, if it does not open before
    BarrierDone done;
  };
  using BarrierKey = std::tuple<Group, std::string, std::uint64_t>;

  // `what`, for errors: "saving a checkpoint in '/data'".
  void Admin(std::string what, const std::string& command, std::vector<std::string> arguments,
             absl::Duration timeout, TextDone done);
  Common Start(std::string what, absl::Duration timeout);
  void Resent(Common& common);
  template <class Key, class SchedulerRequest>
  void Ask(const Key& key, SchedulerRequest& pending);
  void Ask(const BarrierKey& key, BarrierRequest& pending);
  template <class Key, class SchedulerRequest>
  void LookAt(std::map<Key, SchedulerRequest>& requests);
  void Look();
  absl::Status Late(const Common& common) const;

  const absl::Duration resend_interval_;
  runtime::Loop* const loop_;
  node::Membership* const membership_;
  std::uint64_t next_request_ = 1;
  std::map<std::uint64_t, TableRequest> tables_;  // by request
  std::map<std::uint64_t, TextRequest> texts_;    // likewise
  std::map<std::pair<Group, std::string>, std::uint64_t> barrier_numbers_;
  std::map<BarrierKey, BarrierRequest> barriers_;
  runtime::Timer look_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_SCHEDULER_REQUESTS_H_
