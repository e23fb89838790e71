// The membership of a server, worker or reader in the cluster: joins, sends heartbeats, keeps the
// newest cluster map, and leaves.
#ifndef LEEWAY_NODE_MEMBERSHIP_H_
#define LEEWAY_NODE_MEMBERSHIP_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "leeway/config.h"
#include "node/joining.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/buffer.h"
#include "van/van.h"

namespace leeway::node {

// Lives on one loop. Heartbeats run on a loop of their own with a connection of their own, so that
// neither a busy role nor a full send queue looks like death.
class Membership {
 public:
  // Called on the loop.
  class Listener {
   public:
    virtual ~Listener() = default;
    // The scheduler took this node in. Once.
    virtual void OnWelcome(const proto::Welcome& welcome) = 0;
    // A newer map. While the cluster is incomplete it comes only after AskForMap, with epoch 0.
    virtual void OnMap(std::shared_ptr<const proto::ClusterMap> map) = 0;
    // A worker's clock, and the oldest one of which it may still send anything. Both go along when
    // it acknowledges a map, before OnMap.
    virtual std::uint64_t clock() const { return 0; }
    virtual std::uint64_t oldest_clock() const { return 0; }
    // A node died or left, with the reason; the map without it follows.
    virtual void OnNodeDown(const proto::NodeDown& down) = 0;
    // The scheduler's other messages (tables, barriers, checkpoints).
    virtual void OnSchedulerMessage(proto::AnyMessage message) = 0;
    // The scheduler has been silent for longer than Config::failure_timeout, or is heard again.
    virtual void OnSchedulerHeard(bool /*heard*/) {}
    // The scheduler has answered a heartbeat that left at that time, by this node's clock: for
    // Welcome::failure_timeout_ms after that it does not declare this node dead, unless the
    // connections break.
    virtual void OnSchedulerAnswered(absl::Time /*sent*/) {}
    // The connection for heartbeats has broken, so that the scheduler may soon declare this node
    // dead.
    virtual void OnHeartbeatBroken() {}
    // The scheduler's answers in JSON (Admin and status).
    virtual void OnSchedulerText(proto::AnyMessage /*message*/, absl::string_view /*text*/) {}
    // The last call. OK: the scheduler ended the cluster in order (Shutdown). Otherwise: the
    // join was refused, the scheduler was not there or had not taken this node in before
    // Config::connect_timeout (then it has said why), it has given this node up, or it has been
    // silent for Config::scheduler_timeout; the status names it and the setting. A scheduler that
    // is silent for less is waited for.
    virtual void OnOver(const absl::Status& why) = 0;
  };

  struct Setup {
    Config config;
    Role role = Role::kUnknown;
    std::uint64_t incarnation = 0;
    std::vector<std::string> endpoints;  // a server's data threads
    runtime::Host* host = nullptr;       // for the heartbeat's loop
    runtime::Loop* loop = nullptr;
    van::Factory* factory = nullptr;
  };
  // `listener` outlives it. Construct, Start and destroy on the loop.
  Membership(Setup setup, Listener* listener);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  void Start();

  // To the scheduler; FAILED_PRECONDITION before OnWelcome and after OnOver.
  absl::Status Send(const proto::AnyMessage& message);
  // Tells the scheduler that this node has taken the map of that version (servers).
  void AckMap(std::uint64_t version);
  // Asks for the map even of an incomplete cluster, to name the missing nodes; OnMap if it comes.
  void AskForMap();
  // Leaves in order, for a reason that the others are told; `done` once the scheduler knows (OK) or
  // `timeout` has passed. OnOver does not follow.
  void Leave(absl::Duration timeout, absl::AnyInvocable<void(absl::Status)> done,
             std::string reason = "");

  // A scheduler that came back at another address has told a server so.
  void OnSchedulerMoved(const proto::SchedulerMoved& moved);

  const std::string& scheduler_address() const;
  // "the scheduler at tcp://… has been silent for 12s"; without trouble only its address.
  std::string DescribeScheduler() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_MEMBERSHIP_H_
