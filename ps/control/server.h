// A server process: a control loop, which is a member of the cluster, and some data threads, each
// with a loop and an endpoint of its own.
#ifndef LEEWAY_PS_CONTROL_SERVER_H_
#define LEEWAY_PS_CONTROL_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "node/membership.h"
#include "ps/control/server_checkpoints.h"
#include "ps/control/server_publications.h"
#include "ps/data/data_thread.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "runtime/memory/byte_budget.h"
#include "van/van.h"

namespace leeway::ps {

class Server final : private node::Membership::Listener {
 public:
  struct Setup {
    Config config;
    runtime::Host* host = nullptr;
    van::Factory* factory = nullptr;
    DataOptions options;
    // Called on the control loop when the scheduler has taken the server in. Optional.
    std::function<void(const proto::Welcome&)> on_welcome;
  };

  explicit Server(Setup setup);
  // Ends at once, without a word to the scheduler, if it is not over yet. Not on its own loops.
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Binds, joins and serves. `over` is called once, on the control loop, when nothing of it runs
  // any more (it may not destroy the server there): OK when the cluster ended in order.
  void Start(absl::AnyInvocable<void(absl::Status)> over);

  // Leaves the cluster in order, then it is over with `why`. Any thread.
  void Stop(absl::Status why);
  // As Stop, but has the scheduler move its shards to other servers first, as `leeway drain` does:
  // over with OK then. With `why` where there is nowhere to move them to, or once
  // Config::drain_timeout has passed. Any thread.
  void Drain(absl::Status why);

  runtime::Loop* control_loop() { return control_->loop(); }

  // For tests, while the thread's loop does not turn. Null before it is bound and after the end.
  DataThread* data_thread(std::uint32_t index) { return seats_[index].thread.get(); }

 private:
  // One data thread; `thread` is touched on its loop only.
  struct Seat {
    std::unique_ptr<runtime::LoopRunner> runner;
    std::unique_ptr<DataThread> thread;
  };
  using Seen = absl::AnyInvocable<void()>;

  void OnWelcome(const proto::Welcome& welcome) override;
  void OnMap(std::shared_ptr<const proto::ClusterMap> map) override;
  void OnNodeDown(const proto::NodeDown& down) override;
  void OnSchedulerMessage(proto::AnyMessage message) override;
  void OnSchedulerHeard(bool heard) override;
  void OnSchedulerAnswered(absl::Time sent) override;
  void OnHeartbeatBroken() override { SetLease(absl::InfinitePast()); }
  void OnSchedulerText(proto::AnyMessage message, absl::string_view text) override;
  void OnOver(const absl::Status& why) override;

  void Bind(std::uint32_t index);
  void OnBound(std::uint32_t index, absl::StatusOr<std::string> endpoint);
  void JoinCluster();
  // Runs `task` on every data thread's loop, then `done` on the control loop.
  void OnEveryThread(std::function<void(DataThread*, std::uint32_t index)> task, Seen done);
  // Any thread.
  void TellScheduler(proto::AnyMessage message);
  void TellLoad(std::uint32_t index, proto::LoadReport report);
  void SetLease(absl::Time until);
  void LookElsewhere(const proto::SchedulerMoved& moved);
  void GiveUp(const absl::Status& why);
  void Install(const proto::InstallTable& install);
  void Leave(absl::Status why);
  void AskToBeDrained();
  void DrainFailed(const absl::Status& reason);
  void Finish(absl::Status why);
  void Dismantle();

  const Setup setup_;
  const std::uint64_t incarnation_;
  TableMemory table_memory_;  // before the threads whose tables it counts
  const std::shared_ptr<runtime::SharedByteBudget> send_queue_;
  const std::shared_ptr<StragglerLines> straggler_lines_ = std::make_shared<StragglerLines>();
  std::unique_ptr<runtime::LoopRunner> control_;
  std::vector<Seat> seats_;

  std::unique_ptr<ServerCheckpoints> checkpoints_;  // its loop stops after those that it speaks to
  std::unique_ptr<ServerPublications> publications_;

  // On the control loop:
  absl::AnyInvocable<void(absl::Status)> over_;
  std::vector<std::string> endpoints_;                // by data thread
  std::vector<std::vector<proto::ShardLoad>> loads_;  // by data thread, as it reported last
  bool load_told_ = false;                            // the scheduler knows of some
  std::uint32_t bound_ = 0;
  absl::Status bind_failure_;
  std::optional<absl::Status> final_;  // set once it is ending
  bool leaving_ = false;
  std::optional<std::uint32_t> rank_;
  std::uint32_t node_ = 0;                        // once it has a rank
  absl::Duration failure_timeout_;                // the scheduler's
  std::optional<absl::Status> draining_because_;  // while it waits to be drained
  runtime::Timer drain_timer_;                    // to give that up
  runtime::Timer ask_timer_;                      // to ask for it again
  std::unique_ptr<node::Membership> membership_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_SERVER_H_
