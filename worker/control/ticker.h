// The worker's clock, and the sender of its ticks to every data thread that leads a shard.
//
// A tick says that all clocks below `clock` are over, and which pushes are the last that belong to
// them (watermarks). Ticks are cumulative: only the newest is sent, and sent again until it is
// acknowledged. When the epoch changes it is sent to all threads again, since heads may have
// changed. While pushes are retained it is repeated now and then, because its answer says which
// clocks are stable. Lives on the core's loop.
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
  // The first clock: of a worker that joined late, or of all where the cluster started from a
  // checkpoint.
  void Begin(std::uint64_t clock) {
    since_ = clock;
    SetClock(clock);
  }
  void Follow(const proto::ClusterMap& map);
  void OnLinkUp(Link* link);
  void OnAck(Link* link, const proto::ClockAck& ack);
  // Sends again what is due.
  void Look();
  // The oldest clock of which a tick or a request is under way to a head, or may be sent yet.
  std::uint64_t OldestClock() const;
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
  std::uint64_t since_ = 0;  // the first clock of this worker
  std::uint64_t clock_ = 0;
  std::uint64_t epoch_ = 0;
  runtime::Timer resend_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CONTROL_TICKER_H_
