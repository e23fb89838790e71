// Tells the scheduler that this node lives, and notices when the scheduler does not.
#ifndef LEEWAY_NODE_HEARTBEAT_H_
#define LEEWAY_NODE_HEARTBEAT_H_

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/loop.h"
#include "van/van.h"

namespace leeway::node {

// Has a loop and a van of its own, so that neither a busy role nor a full send queue looks like
// death. A connection that breaks is made again; only silence counts.
class Heartbeat {
 public:
  struct Setup {
    std::string scheduler;  // where to connect
    van::Identity identity;
    van::Limits limits;
    absl::Duration interval;
    absl::Duration failure_timeout;
    runtime::Host* host = nullptr;
    runtime::Loop* owner = nullptr;  // where `lost` is called
    van::Factory* factory = nullptr;
  };
  // UNAVAILABLE at every beat while the scheduler has not answered for `failure_timeout`; ABORTED
  // once it has said that it takes this node for dead. On the owner's loop, and never after the
  // Heartbeat has been destroyed.
  using Lost = absl::AnyInvocable<void(const absl::Status&)>;

  // Construct and destroy on the owner's loop.
  Heartbeat(Setup setup, Lost lost);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Beater;

  std::shared_ptr<Lost> lost_;  // calls on their way to the owner hold it weakly
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<Beater> beater_;  // lives on the runner's loop
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_HEARTBEAT_H_
