// How a worker that came when the others were under way finds its place: every thread that leads a
// shard gives it a clock from which on it is waited for, and it starts at the largest of them.
#ifndef LEEWAY_WORKER_CONTROL_LATE_JOIN_H_
#define LEEWAY_WORKER_CONTROL_LATE_JOIN_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "worker/links/servers.h"
#include "worker/requests/requests.h"

namespace leeway::worker {

// Asking again is harmless: who has let the worker in says the same clock again.
class LateJoin {
 public:
  using Done = absl::AnyInvocable<void(std::uint64_t clock)>;
  // `done` once, from within Follow or OnReply.
  LateJoin(const Config& config, runtime::Loop* loop, Servers* servers, WorkerId self, Done done);

  // Asks everybody; of a newer epoch everybody again, since shards may have other heads. Servers
  // and Requests have followed the map already.
  void Follow(const proto::ClusterMap& map);
  void OnLinkUp(Link* link);
  void OnReply(Link* link, const proto::EnterClockReply& reply);
  // "server 1 thread 0 (tcp://…) has not let this worker in".
  std::string DescribeWait() const;

 private:
  bool Waits(const Link& link) const;
  void Ask(Link* link);
  void AskAll();
  void FinishIfAllAnswered();

  const absl::Duration resend_interval_;
  runtime::Loop* const loop_;
  Servers* const servers_;
  const WorkerId self_;
  Done done_;
  std::uint64_t epoch_ = 0;
  std::uint64_t clock_ = 0;
  std::set<std::pair<std::uint32_t, std::uint32_t>> answered_;  // by rank and thread, in this epoch
  absl::Duration delay_;
  runtime::Timer resend_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_LATE_JOIN_H_
