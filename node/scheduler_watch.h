// The watch over the scheduler: sends it heartbeats once this node has joined, and tells its owner
// when the scheduler is silent, is heard again, or has been silent for too long.
//
// The scheduler is silent when neither heartbeats are answered nor anything comes over the link. It
// is given Config::scheduler_timeout to come back, since the cluster goes on without it as long as
// no other node fails. Lives on the owner's loop; its heartbeats have a loop of their own.
#ifndef LEEWAY_NODE_SCHEDULER_WATCH_H_
#define LEEWAY_NODE_SCHEDULER_WATCH_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "node/heartbeat.h"
#include "node/scheduler_link.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "van/van.h"

namespace leeway::node {

class SchedulerWatch {
 public:
  // An owner may call Stop within any of these.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The scheduler has been silent for the failure timeout, or is heard again.
    virtual void OnSchedulerHeard(bool heard) = 0;
    // It has answered a heartbeat that left at that time.
    virtual void OnSchedulerAnswered(absl::Time sent) = 0;
    // The connection of the heartbeats has broken.
    virtual void OnHeartbeatBroken() = 0;
    // That connection stands again, perhaps to another scheduler.
    virtual void OnHeartbeatConnectedAgain() = 0;
    // ABORTED: the scheduler has given up on this node. UNAVAILABLE: it was silent for too long.
    virtual void OnSchedulerLost(const absl::Status& why) = 0;
  };

  // All outlive it.
  SchedulerWatch(const Config* config, runtime::Host* host, runtime::Loop* loop,
                 van::Factory* factory, SchedulerLink* link, Owner* owner);

  // This node has joined. The settings of `welcome` count, not its own, since the scheduler judges
  // it by those.
  void Start(const proto::Welcome& welcome);
  void Stop() { heartbeat_.reset(); }
  // The scheduler is at another address now.
  void Redirect(const std::string& url);

  // Since when the scheduler has been silent; nullopt: it is not.
  const std::optional<absl::Time>& silent_since() const { return silent_since_; }

 private:
  void OnAnswer(absl::Time sent);
  void OnSilence(absl::Duration heartbeats);
  void HeardAgain();

  const Config* const config_;
  runtime::Host* const host_;
  runtime::Loop* const loop_;
  van::Factory* const factory_;
  SchedulerLink* const link_;
  Owner* const owner_;
  absl::Duration failure_timeout_;
  std::optional<absl::Time> silent_since_;
  std::string heartbeats_to_;             // the scheduler's address, as the heartbeats have it
  std::unique_ptr<Heartbeat> heartbeat_;  // null: not started, or stopped
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_SCHEDULER_WATCH_H_
