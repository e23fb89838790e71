// The worker's clock, as every server thread that leads a shard is told it.
//
// A tick says: iterations up to `clock` are over, and these are the last pushes that belong to
// them. Ticks are cumulative, so only the newest is ever sent, and resent until it is acknowledged;
// to everybody again when the epoch changes, since a shard may have got another head. While pushes
// are retained it is repeated now and then, since its answer says which clocks have closed.
#ifndef LEEWAY_WORKER_CONTROL_TICKER_H_
#define LEEWAY_WORKER_CONTROL_TICKER_H_

#include <cstdint>

#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "worker/links/servers.h"
#include "worker/requests/requests.h"

namespace leeway::worker {

class Ticker {
 public:
  Ticker(const Config& config, runtime::Loop* loop, Servers* servers, Requests* requests,
         WorkerId self);

  std::uint64_t clock() const { return clock_; }
  void Tick() { SetClock(clock_ + 1); }
  // A worker that came late starts there, as all do where the cluster started from a checkpoint.
  void Begin(std::uint64_t clock) {
    since_ = clock;
    SetClock(clock);
  }
  void Follow(const proto::ClusterMap& map);
  void OnLinkUp(Link* link);
  void OnAck(Link* link, const proto::ClockAck& ack);
  // Sends what is due again.
  void Look();
  // Whether every thread that leads a shard knows the clock.
  bool acknowledged() const;
  void Stop() { resend_.Clear(); }

 private:
  void SetClock(std::uint64_t clock);
  bool Behind(const Link& link) const;
  bool Due(const Link& link) const;
  void Send(Link* link);
  void SendAnew(Link* link, absl::Duration delay);

  const absl::Duration resend_interval_;
  runtime::Loop* const loop_;
  Servers* const servers_;
  Requests* const requests_;
  const WorkerId self_;
  std::uint64_t since_ = 0;  // the first iteration of this worker
  std::uint64_t clock_ = 0;
  std::uint64_t epoch_ = 0;
  runtime::Timer resend_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_TICKER_H_
