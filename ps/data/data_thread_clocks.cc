// Clocks as a data thread hears of them and speaks of them: for all its shards together.
#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/data/data_thread.h"
#include "runtime/base/mutants.h"

namespace leeway::ps {

void DataThread::OnTick(van::PeerId peer, const van::Identity& sender, proto::ClockTick tick) {
  ++counters_.ticks;
  absl::StatusOr<WorkerRecord*> worker =
      workers_.Find(sender, cluster_, tick.worker, tick.incarnation);
  if (absl::IsPermissionDenied(worker.status())) return Violation(peer, worker.status());
  // It is sent again until it is acknowledged, by which time the maps agree.
  if (!worker.ok() || map_->epoch == 0) return;
  if (tick.epoch != map_->epoch && !runtime::Planted<"tick-of-another-epoch">()) return;
  if (tick.clock >= kClockMax && !runtime::Planted<"tick-beyond-clocks">()) {
    return Violation(peer, absl::InvalidArgumentError(absl::StrCat(
                               "a tick of clock ", tick.clock, "; clocks are below ", kClockMax)));
  }
  for (const proto::ShardWatermark& watermark : tick.watermarks) {
    const Replica* replica = FindReplica(watermark.shard);
    if (replica != nullptr && replica->is_head()) continue;
    return Violation(peer, absl::InvalidArgumentError(
                               absl::StrCat("a tick with a watermark of shard ", watermark.shard,
                                            ", which does not belong to this server thread")));
  }
  if (tick.clock >= (*worker)->tick_clock) {
    (*worker)->tick_clock = tick.clock;
    (*worker)->tick_peer = peer;
  }
  TellShards(**worker, &tick);
  AcknowledgeTickIfDue(*worker);
}

// Every shard hears of it, with its own watermarks where it has any.
void DataThread::TellShards(const WorkerRecord& worker, proto::ClockTick* tick) {
  std::vector<proto::ShardWatermark>& watermarks = tick->watermarks;
  std::sort(watermarks.begin(), watermarks.end(),
            [](const proto::ShardWatermark& a, const proto::ShardWatermark& b) {
              return std::tie(a.shard, a.sequence) < std::tie(b.shard, b.sequence);
            });
  auto watermark = watermarks.begin();
  for (auto& [id, replica] : replicas_) {
    Shard::Watermarks here;
    for (; watermark != watermarks.end() && watermark->shard == id; ++watermark) {
      here.by_class[watermark->held ? kHeld : kAtOnce] = watermark->sequence;
    }
    if (!replica->leads()) continue;
    replica->shard().TakeTick(worker.entry.rank, worker.entry.incarnation, tick->clock, tick->since,
                              here);
    replica->UpdateStable();
  }
}

void DataThread::AcknowledgeTickIfDue(WorkerRecord* worker) {
  if (worker->tick_clock == 0) return;
  for (const auto& [id, replica] : replicas_) {
    if (!replica->is_head()) continue;
    if (!replica->leads() && runtime::Planted<"tick-acknowledged-in-handover">()) continue;
    if (!replica->leads()) return;
    const std::uint64_t counted = replica->shard().clocks().ClockOf(worker->entry.rank);
    if (counted < worker->tick_clock && !runtime::Planted<"tick-acknowledged-early">()) return;
  }
  SendClockAck(worker->tick_peer, std::exchange(worker->tick_clock, 0));
}

void DataThread::SendClockAck(van::PeerId peer, std::uint64_t clock) {
  Send(peer, proto::ClockAck{.clock = clock, .stable = Stable(), .epoch = map_->epoch})
      .IgnoreError();
}

// What all shards count.
std::uint64_t DataThread::ClockOf(std::uint32_t rank) const {
  std::uint64_t clock = kClockMax;
  for (const auto& [id, replica] : replicas_) {
    if (replica->leads()) clock = std::min(clock, replica->shard().clocks().ClockOf(rank));
  }
  return clock == kClockMax ? 0 : clock;
}

// ---- clocks that have closed, on every replica ----

std::uint64_t DataThread::Stable() const {
  std::uint64_t stable = kClockMax;
  for (const auto& [id, replica] : replicas_) {
    if (!replica->is_head()) continue;
    if (!replica->leads() && runtime::Planted<"stable-without-awaited">()) continue;
    const std::uint64_t its = replica->leads() ? replica->stable() : 0;
    const bool fastest = runtime::Planted<"stable-of-the-fastest-shard">() && stable != kClockMax;
    stable = fastest ? std::max(stable, its) : std::min(stable, its);
  }
  return stable == kClockMax ? 0 : stable;
}

// Workers keep pushes until they hear of it; they are told once for all shards that come along.
void DataThread::StableHasGrown() {
  if (stable_posted_ || !replica_context_.provisional_given) return;
  stable_posted_ = true;
  setup_.loop->Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    stable_posted_ = false;
    TellStable();
  });
}

void DataThread::TellStable() {
  const std::uint64_t stable = Stable();
  if (stable <= stable_told_) return;
  stable_told_ = stable;
  for (const auto& [peer, identity] : peers_) {
    if (identity.role != Role::kWorker) continue;
    absl::StatusOr<WorkerRecord*> worker = workers_.Find(identity, cluster_);
    if (worker.ok()) SendClockAck(peer, ClockOf((*worker)->entry.rank));
  }
}

// ---- workers that come late ----

void DataThread::OnEnter(van::PeerId peer, const van::Identity& sender,
                         const proto::EnterClock& enter) {
  absl::StatusOr<WorkerRecord*> worker =
      workers_.Find(sender, cluster_, enter.worker, enter.incarnation);
  if (absl::IsPermissionDenied(worker.status())) return Violation(peer, worker.status());
  // It is sent again until it is answered.
  if (!worker.ok() || enter.epoch != map_->epoch || map_->epoch == 0) return;
  for (const auto& [id, replica] : replicas_) {
    if (replica->is_head() && !replica->leads() && !runtime::Planted<"enters-during-handover">()) {
      return;
    }
  }
  // One more than there are shards, so that it is not answered before all have been asked.
  struct Round {
    std::size_t missing = 1;
    proto::EnterClockReply reply;
  };
  auto round = std::make_shared<Round>();
  round->reply.epoch = map_->epoch;
  auto arrived = [this, round, peer] {
    if (--round->missing == 0) Send(peer, round->reply).IgnoreError();
  };
  for (const auto& [id, replica] : replicas_) {
    if (!replica->leads()) continue;
    ++round->missing;
    const std::uint64_t clock = replica->shard().Enter(enter.worker, enter.incarnation);
    const bool largest = !runtime::Planted<"enters-at-the-last-shard">();
    round->reply.clock = largest ? std::max(round->reply.clock, clock) : clock;
    if (runtime::Planted<"enter-answered-too-soon">()) {
      arrived();
      continue;
    }
    replica->WhenCommitted(arrived);
  }
  arrived();
}

}  // namespace leeway::ps
