// The worker's clock, as every server thread is told it.
//
// A tick says: iterations up to `clock` are over, and these are the last requests that belong to
// them. Ticks are cumulative, so only the newest is ever sent, and resent until it is acknowledged.
#ifndef LEEWAY_WORKER_TICKER_H_
#define LEEWAY_WORKER_TICKER_H_

#include <cstdint>
#include <vector>

#include "leeway/config.h"
#include "proto/messages.h"
#include "runtime/loop.h"
#include "worker/alarm.h"
#include "worker/requests.h"
#include "worker/servers.h"

namespace leeway::worker {

class Ticker {
 public:
  Ticker(const Config& config, runtime::Loop* loop, Servers* servers, const Requests* requests,
         Requests::Self self);

  std::uint64_t clock() const { return clock_; }
  void Tick();
  // Shards may have moved to threads that have not heard of them: those are told again.
  void Follow(const proto::ClusterMap& map);
  void OnLinkUp(Link* link);
  void OnAck(Link* link, const proto::ClockAck& ack);
  // Whether every living server thread knows the clock.
  bool acknowledged() const;
  void Stop() { resend_.Clear(); }

 private:
  bool Behind(const Link& link) const { return link.alive && link.clock_acked < clock_; }
  void Send(Link* link);
  void ResendDue();

  const absl::Duration resend_interval_;
  runtime::Loop* const loop_;
  Servers* const servers_;
  const Requests* const requests_;
  const Requests::Self self_;
  std::uint64_t clock_ = 0;
  std::uint64_t epoch_ = 0;
  std::vector<proto::ShardOwner> owners_;
  std::vector<std::uint64_t> marks_;  // by shard, as of the last Tick
  Alarm resend_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_TICKER_H_
