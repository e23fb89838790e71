#include "worker/control/ticker.h"

#include <algorithm>

#include "runtime/loop/backoff.h"

namespace leeway::worker {
namespace {

// If a tick is unanswered after so many attempts over a connection that is up, the server lacks one
// of the pushes that the tick names.
constexpr int kTicksPatience = 3;

// A server may hear of an epoch a little later than a worker, and drops ticks of it until then.
constexpr absl::Duration kNewEpochDelay = absl::Milliseconds(20);

}  // namespace

Ticker::Ticker(const Config& config, runtime::Loop* loop, Servers* servers, Requests* requests,
               WorkerId self)
    : resend_interval_(runtime::ResendInterval(config)),
      loop_(loop),
      servers_(servers),
      requests_(requests),
      self_(self),
      resend_(loop, [this] { Look(); }) {}

bool Ticker::Behind(const Link& link) const {
  return link.alive && !link.shards.empty() && link.clock_acked < clock_;
}

bool Ticker::Due(const Link& link) const {
  return Behind(link) || requests_->RetainsBefore(clock_, link);
}

void Ticker::SetClock(std::uint64_t clock) {
  clock_ = clock;
  requests_->NumberAll();
  for (const auto& [place, link] : servers_->links()) SendAnew(link.get(), resend_interval_);
}

void Ticker::Follow(const proto::ClusterMap& map) {
  if (map.epoch == 0 || map.epoch == epoch_) return;
  epoch_ = map.epoch;
  for (const auto& [place, link] : servers_->links()) {
    link->clock_acked = 0;
    SendAnew(link.get(), std::min(kNewEpochDelay, resend_interval_));
  }
}

void Ticker::OnLinkUp(Link* link) { SendAnew(link, resend_interval_); }

// An acknowledgement of another epoch is about other shards.
void Ticker::OnAck(Link* link, const proto::ClockAck& ack) {
  if (ack.epoch != epoch_) return;
  link->clock_acked = std::max(link->clock_acked, std::min(ack.clock, clock_));
  if (!Behind(*link)) {
    link->ticks_unanswered = 0;
    link->tick_delay = std::max(link->tick_delay, resend_interval_);
  }
  requests_->OnStable(link, std::min(ack.stable, clock_));
}

std::uint64_t Ticker::OldestClock() const {
  std::uint64_t oldest = std::min(clock_, requests_->OldestClock());
  for (const auto& [place, link] : servers_->links()) {
    if (Behind(*link)) oldest = std::min(oldest, std::max(link->clock_acked, since_));
  }
  return oldest;
}

bool Ticker::acknowledged() const {
  return std::none_of(servers_->links().begin(), servers_->links().end(),
                      [this](const auto& entry) { return Behind(*entry.second); });
}

void Ticker::SendAnew(Link* link, absl::Duration delay) {
  if (!Behind(*link)) return;
  link->tick_delay = delay;
  link->ticks_unanswered = 0;
  Send(link);
}

void Ticker::Send(Link* link) {
  if (!link->up) return;  // OnLinkUp sends it
  const proto::ClockTick tick{.worker = self_.rank,
                              .incarnation = self_.incarnation,
                              .epoch = epoch_,
                              .clock = clock_,
                              .watermarks = requests_->WatermarksFor(*link, clock_),
                              .since = since_};
  // A failed send is like a lost message.
  servers_->Send(link, tick, {}).IgnoreError();
  link->tick_due = loop_->Now() + runtime::Jittered(link->tick_delay, loop_);
  link->tick_delay = runtime::NextResendDelay(link->tick_delay, resend_interval_);
  resend_.SetBy(link->tick_due);
}

void Ticker::Look() {
  const absl::Time now = loop_->Now();
  for (const auto& [place, link] : servers_->links()) {
    if (!link->up || !Due(*link)) continue;
    if (link->tick_due > now) {
      resend_.SetBy(link->tick_due);
      continue;
    }
    const bool long_due = Behind(*link) && link->tick_delay >= resend_interval_;
    if (long_due && ++link->ticks_unanswered % kTicksPatience == 0) {
      requests_->ResendRetained(link.get());
    }
    Send(link.get());
  }
}

}  // namespace leeway::worker
