// The scheduler: who is in the cluster, who is alive, which server holds which shard, barriers and
// the catalogue of tables. docs/architecture.md says what is said between it and the nodes.
//
// This class receives messages, asks the small classes beside it what follows, and sends what they
// say. Each of those knows one thing and no network.
#ifndef LEEWAY_SCHEDULER_CONTROL_SCHEDULER_H_
#define LEEWAY_SCHEDULER_CONTROL_SCHEDULER_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "van/van.h"

namespace leeway::scheduler {

// Lives on one loop: construct, use and destroy it there.
class Scheduler {
 public:
  // Called once, on the loop, when the cluster is over; the scheduler may be destroyed in it. OK:
  // it ended in order and no node died. UNAVAILABLE names the nodes that died, DEADLINE_EXCEEDED
  // those that never came; otherwise what Stop was given.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  Scheduler(runtime::Host* host, runtime::Loop* loop, van::Factory* factory, Config config);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Binds Config::scheduler. An error names the address and the setting; `done` is not called then.
  absl::Status Start(Done done);
  // Ends the cluster early, telling everyone why; `done` follows.
  void Stop(const absl::Status& why);

  // Where nodes connect; valid after Start.
  const std::string& address() const;
  // What `leeway status` shows: members, epoch, tables, barriers and counters as JSON.
  std::string StatusJson() const;
  // The newest map.
  std::shared_ptr<const proto::ClusterMap> map() const;
  // Whether a scheduler that goes on from LEEWAY_SCHEDULER_STATE would know that map. Until then
  // nobody else knows it either.
  bool map_is_kept() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Runs a scheduler over the network on a thread of its own until the cluster is over, or until
// SIGTERM or SIGINT, which end the cluster in order. Blocks.
absl::Status RunScheduler(const Config& config);

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CONTROL_SCHEDULER_H_
