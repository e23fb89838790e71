#include "worker/ticker.h"

#include <algorithm>

#include "worker/resend_delay.h"

namespace leeway::worker {
Ticker::Ticker(const Config& config, runtime::Loop* loop, Servers* servers,
               const Requests* requests, Requests::Self self)
    : resend_interval_(ResendInterval(config)),
      loop_(loop),
      servers_(servers),
      requests_(requests),
      self_(self),
      resend_(loop, [this] { ResendDue(); }) {}

void Ticker::Tick() {
  ++clock_;
  for (std::uint32_t shard = 0; shard < marks_.size(); ++shard) {
    marks_[shard] = requests_->LastSequence(shard);
  }
  for (const auto& [place, link] : servers_->links()) {
    link->tick_delay = resend_interval_;
    Send(link.get());
  }
}

void Ticker::Follow(const proto::ClusterMap& map) {
  if (map.epoch == 0 || map.epoch == epoch_) return;
  epoch_ = map.epoch;
  marks_.resize(map.owners.size(), 0);
  for (std::uint32_t shard = 0; shard < owners_.size() && shard < map.owners.size(); ++shard) {
    if (owners_[shard] == map.owners[shard]) continue;
    Link* link = servers_->Find(map.owners[shard].server_rank, map.owners[shard].thread);
    if (link != nullptr) link->clock_acked = 0;
  }
  owners_ = map.owners;
  // A tick of the older epoch may have been passed over.
  for (const auto& [place, link] : servers_->links()) {
    if (!Behind(*link)) continue;
    link->tick_delay = resend_interval_;
    Send(link.get());
  }
}

void Ticker::OnLinkUp(Link* link) {
  if (!Behind(*link)) return;
  link->tick_delay = resend_interval_;
  Send(link);
}

void Ticker::OnAck(Link* link, const proto::ClockAck& ack) {
  link->clock_acked = std::max(link->clock_acked, std::min(ack.clock, clock_));
}

bool Ticker::acknowledged() const {
  return std::none_of(servers_->links().begin(), servers_->links().end(),
                      [this](const auto& entry) { return Behind(*entry.second); });
}

void Ticker::Send(Link* link) {
  if (!link->up) return;  // OnLinkUp will
  proto::ClockTick tick{.worker = self_.rank,
                        .incarnation = self_.incarnation,
                        .epoch = epoch_,
                        .clock = clock_,
                        .marks = {}};
  for (const std::uint32_t shard : link->shards) {
    if (marks_[shard] > 0) tick.marks.push_back({.sequence = marks_[shard], .shard = shard});
  }
  // A send that fails is one more lost message.
  servers_->Send(link, tick, {}).IgnoreError();
  link->tick_due = loop_->Now() + Jittered(link->tick_delay, loop_);
  link->tick_delay = NextResendDelay(link->tick_delay, resend_interval_);
  resend_.SetBy(link->tick_due);
}

void Ticker::ResendDue() {
  const absl::Time now = loop_->Now();
  for (const auto& [place, link] : servers_->links()) {
    if (!Behind(*link) || !link->up) continue;
    if (link->tick_due <= now) {
      Send(link.get());
    } else {
      resend_.SetBy(link->tick_due);
    }
  }
}

}  // namespace leeway::worker
