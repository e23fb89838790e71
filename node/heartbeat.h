// The heartbeats of a node: tells the scheduler that this node lives, and its owner when the
// scheduler does not answer.
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

// How long connecting to the scheduler may take. A handshake that takes longer has lost its
// messages, and repeats them ever more rarely.
inline absl::Duration HandshakeMax(absl::Duration failure_timeout) { return failure_timeout / 4; }

// Has a loop and a van of its own, so that neither a busy role nor a full send queue looks like
// death. A connection that breaks is made again; only silence counts.
class Heartbeat {
 public:
  struct Setup {
    std::string scheduler;                    // its address
    std::uint64_t scheduler_incarnation = 0;  // of the one that this node has joined
    van::Identity identity;
    van::Limits limits;
    absl::Duration interval;
    absl::Duration failure_timeout;
    runtime::Host* host = nullptr;
    runtime::Loop* owner = nullptr;  // on which the reports are made
    van::Factory* factory = nullptr;
  };
  // Called on the owner's loop, and never after the Heartbeat has been destroyed.
  struct Reports {
    // At every heartbeat while the scheduler has not answered for `failure_timeout`: for how long.
    absl::AnyInvocable<void(absl::Duration)> silent;
    absl::AnyInvocable<void()> heard_again;
    // The scheduler has answered a heartbeat that left at that time; the times only grow.
    absl::AnyInvocable<void(absl::Time)> answered;
    // The connection has broken: the scheduler may know of it, too.
    absl::AnyInvocable<void()> broken;
    // The connection broke and stands again, or leads to another scheduler than the one that was
    // joined.
    absl::AnyInvocable<void()> connected_again;
    // ABORTED: the scheduler has declared this node dead.
    absl::AnyInvocable<void(const absl::Status&)> given_up;
  };

  // Construct, use and destroy on the owner's loop.
  Heartbeat(Setup setup, Reports reports);
  ~Heartbeat();
  // The scheduler is at that address from now on.
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
