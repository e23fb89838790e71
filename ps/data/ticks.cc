#include "ps/data/ticks.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace leeway::ps {

void Ticks::OnTick(van::PeerId peer, const van::Identity& sender, proto::ClockTick tick) {
  ++state_->counters.ticks;
  absl::StatusOr<WorkerRecord*> worker =
      state_->workers.Find(sender, state_->cluster, tick.worker, tick.incarnation);
  if (absl::IsPermissionDenied(worker.status())) {
    return state_->connections.Violation(peer, worker.status());
  }
  // The worker repeats the tick until it is acknowledged, by which time the maps agree.
  if (!worker.ok() || state_->map->epoch == 0) return;
  if (tick.epoch != state_->map->epoch) return;
  if (tick.clock >= kClockMax) {
    return state_->connections.Violation(
        peer, absl::InvalidArgumentError(
                  absl::StrCat("a tick of clock ", tick.clock, "; clocks are below ", kClockMax)));
  }
  for (const proto::ShardWatermark& watermark : tick.watermarks) {
    const Replica* replica = state_->replicas.Find(watermark.shard);
    if (replica != nullptr && replica->is_head()) continue;
    return state_->connections.Violation(
        peer, absl::InvalidArgumentError(
                  absl::StrCat("a tick with a watermark of shard ", watermark.shard,
                               ", which does not belong to this data thread")));
  }
  if (tick.clock >= (*worker)->tick_clock) {
    (*worker)->tick_clock = tick.clock;
    (*worker)->tick_peer = peer;
  }
  TellShards(**worker, &tick);
  AcknowledgeIfDue(*worker);
}

// Every shard hears of the tick, with its own watermarks where it has any.
void Ticks::TellShards(const WorkerRecord& worker, proto::ClockTick* tick) {
  std::vector<proto::ShardWatermark>& watermarks = tick->watermarks;
  std::sort(watermarks.begin(), watermarks.end(),
            [](const proto::ShardWatermark& a, const proto::ShardWatermark& b) {
              return std::tie(a.shard, a.sequence) < std::tie(b.shard, b.sequence);
            });
  auto watermark = watermarks.begin();
  for (auto& [id, replica] : state_->replicas.all()) {
    Watermarks here;
    for (; watermark != watermarks.end() && watermark->shard == id; ++watermark) {
      here.by_class[watermark->held ? kHeld : kAtOnce] = watermark->sequence;
    }
    if (!replica->leads()) continue;
    replica->shard().TakeTick(worker.entry.rank, worker.entry.incarnation, tick->clock, tick->since,
                              here);
    replica->UpdateStable();
  }
}

void Ticks::AcknowledgeIfDue(WorkerRecord* worker) {
  if (worker->tick_clock == 0) return;
  for (const auto& [id, replica] : state_->replicas.all()) {
    if (!replica->is_head()) continue;
    if (!replica->leads()) return;
    const std::uint64_t counted = replica->shard().clocks().ClockOf(worker->entry.rank);
    if (counted < worker->tick_clock) return;
  }
  SendAck(worker->tick_peer, std::exchange(worker->tick_clock, 0));
}

void Ticks::SendAck(van::PeerId peer, std::uint64_t clock) {
  const proto::ClockAck ack{
      .clock = clock, .stable = state_->replicas.Stable(), .epoch = state_->map->epoch};
  state_->connections.Send(peer, ack).IgnoreError();
}

void Ticks::OnNewEpoch() {
  state_->workers.ForgetTicks();
  stable_told_ = 0;
}

// ---- stable clocks ----

void Ticks::OnStableGrown() {
  if (stable_posted_ || !state_->replicas.context().provisional_given) return;
  stable_posted_ = true;
  state_->loop->Post([this, here = lifetime_.watch()] {
    if (!here) return;
    stable_posted_ = false;
    TellStable();
  });
}

void Ticks::TellStable() {
  const std::uint64_t stable = state_->replicas.Stable();
  if (stable <= stable_told_) return;
  stable_told_ = stable;
  for (const auto& [peer, identity] : state_->connections.all()) {
    if (identity.role != Role::kWorker) continue;
    absl::StatusOr<WorkerRecord*> worker = state_->workers.Find(identity, state_->cluster);
    if (worker.ok()) SendAck(peer, state_->replicas.ClockOf((*worker)->entry.rank));
  }
}

// ---- workers that join late ----

void Ticks::OnEnter(van::PeerId peer, const van::Identity& sender, const proto::EnterClock& enter) {
  absl::StatusOr<WorkerRecord*> worker =
      state_->workers.Find(sender, state_->cluster, enter.worker, enter.incarnation);
  if (absl::IsPermissionDenied(worker.status())) {
    return state_->connections.Violation(peer, worker.status());
  }
  // The worker repeats it until it is answered.
  if (!worker.ok() || enter.epoch != state_->map->epoch || state_->map->epoch == 0) return;
  for (const auto& [id, replica] : state_->replicas.all()) {
    if (replica->is_head() && !replica->leads()) {
      return;
    }
  }
  // One more than there are shards, so that it is not answered before all have been asked.
  struct Round {
    std::size_t missing = 1;
    proto::EnterClockReply reply;
  };
  auto round = std::make_shared<Round>();
  round->reply.epoch = state_->map->epoch;
  auto arrived = [this, round, peer] {
    if (--round->missing == 0) state_->connections.Send(peer, round->reply).IgnoreError();
  };
  for (const auto& [id, replica] : state_->replicas.all()) {
    if (!replica->leads()) continue;
    ++round->missing;
    const std::uint64_t clock = replica->shard().Enter(enter.worker, enter.incarnation);
    round->reply.clock = std::max(round->reply.clock, clock);
    replica->WhenCommitted(arrived);
  }
  arrived();
}

}  // namespace leeway::ps
