// Tells the scheduler that this node lives, and notices when the scheduler does not.
#ifndef LEEWAY_NODE_HEARTBEAT_H_
#define LEEWAY_NODE_HEARTBEAT_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/loop/loop.h"
#include "van/van.h"

namespace leeway::node {

// Has a loop and a van of its own, so that neither a busy role nor a full send queue looks like
// death. A connection that breaks is made again; only silence counts.
class Heartbeat {
 public:
  struct Setup {
    std::string scheduler;                    // where to connect
    std::uint64_t scheduler_incarnation = 0;  // which one this node has joined
    van::Identity identity;
    van::Limits limits;
    absl::Duration interval;
    absl::Duration failure_timeout;
    runtime::Host* host = nullptr;
    runtime::Loop* owner = nullptr;  // where the reports are made
    van::Factory* factory = nullptr;
  };
  // Called on the owner's loop, and never after the Heartbeat has been destroyed.
  struct Reports {
    // At every beat while the scheduler has not answered for `failure_timeout`, how long.
    absl::AnyInvocable<void(absl::Duration)> silent;
    absl::AnyInvocable<void()> heard_again;
    // The scheduler has answered a beat, which left at that time; no older one is told after it.
    absl::AnyInvocable<void(absl::Time)> answered;
    // The connection has broken that beats go over: the scheduler may know of it, too.
    absl::AnyInvocable<void()> broken;
    // The connection broke and stands again, or leads elsewhere than to the scheduler that was
    // joined: it may be another one that is there now.
    absl::AnyInvocable<void()> connected_again;
    // ABORTED: the scheduler says that it takes this node for dead.
    absl::AnyInvocable<void(const absl::Status&)> given_up;
  };

  // Construct, use and destroy on the owner's loop.
  Heartbeat(Setup setup, Reports reports);
  ~Heartbeat();
  // The scheduler is to be found there from now on.
  void Redirect(const std::string& scheduler);
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Beater;

  std::shared_ptr<Reports> reports_;  // calls on their way to the owner hold it weakly
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<Beater> beater_;  // lives on the runner's loop
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_HEARTBEAT_H_
