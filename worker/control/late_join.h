// The late join of a worker, which enters a cluster whose workers are training already.
//
// Every data thread that leads a shard answers with a clock from which on it waits for this
// worker; the worker starts at the largest of them. It asks again until all have answered, which is
// harmless: a thread that has answered says the same clock again. Lives on the core's loop.
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

class LateJoin {
 public:
  using Done = absl::AnyInvocable<void(std::uint64_t clock)>;
  // `done` once, from within Follow or OnReply.
  LateJoin(const Config& config, runtime::Loop* loop, Servers* servers, WorkerId self, Done done);

  // Asks all heads of shards; in a newer epoch all of them again, since heads may have changed.
  // Servers and Requests have followed the map already.
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
