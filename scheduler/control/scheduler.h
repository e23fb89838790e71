// The scheduler of a cluster: takes members in, finds dead ones, and keeps the cluster map, the
// barriers, the catalogue of tables and the checkpoints. docs/protocol.md describes the
// messages between it and the nodes.
//
// This class owns the services that do that (services.h) and joins them: the Dispatcher receives
// messages, MemberService takes nodes in, ChainController plans the shards, TableService and
// CodecService have the tables, Checkpoints and Restoration save and restore, Recovery keeps the
// state on disk, ClusterEnd ends the cluster.
#ifndef LEEWAY_SCHEDULER_CONTROL_SCHEDULER_H_
#define LEEWAY_SCHEDULER_CONTROL_SCHEDULER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/admin/admin_service.h"
#include "van/van.h"

namespace leeway::scheduler {

// What the program that runs a scheduler adds to it (compat/). All are called on its loop.
struct Additions {
  // Before anything else.
  std::function<void(runtime::Loop*)> on_start = {};
  // Commands beside the scheduler's own, by name. They may be given again after a restart.
  std::map<std::string, AdminService::Handler> commands = {};
  // There is a newer map.
  std::function<void(const proto::ClusterMap&)> on_map = {};
  // The scheduler is destroyed: the commands' answers go nowhere from here on.
  std::function<void()> on_end = {};
};

// Lives on one loop: construct, use and destroy it there.
class Scheduler {
 public:
  // Called once, on the loop, when the cluster is over; the scheduler may be destroyed in it. OK:
  // it ended in order and no node died. UNAVAILABLE names the nodes that died, DEADLINE_EXCEEDED
  // those that never came; otherwise what Stop was given.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  Scheduler(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, Config config,
            Additions additions = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Binds Config::scheduler. An error names the address and the setting; `done` is not called then.
  absl::Status Start(Done done);
  // Ends the cluster early, and tells all nodes why; `done` follows.
  void Stop(const absl::Status& why);

  // Where nodes connect; valid after Start.
  const std::string& address() const;
  // The status as JSON, as `leeway status` shows it: members, epoch, tables, barriers, counters.
  std::string StatusJson() const;
  // The newest map.
  std::shared_ptr<const proto::ClusterMap> map() const;
  // True if a scheduler that goes on from LEEWAY_SCHEDULER_STATE would know that map. Until then no
  // node knows it either.
  bool map_is_kept() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Runs a scheduler over the network on a thread of its own until the cluster is over, or until
// SIGTERM or SIGINT, which end the cluster in order. Blocks.
absl::Status RunScheduler(const Config& config, const Additions& additions = {});

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_SCHEDULER_H_
