#include "ps/shard.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "runtime/log.h"

namespace leeway::ps {

Shard::Shard(std::uint32_t id, ShardContext* context)
    : id_(id), context_(context), contributions_(&context->held), held_(&context->held) {}

Shard::~Shard() { context_->loop->Cancel(timer_); }

ShardStore* Shard::StoreOf(const Table& table) {
  std::unique_ptr<ShardStore>& store = stores_[table.id()];
  if (store == nullptr) {
    const StorePlace place{.table = table.id(),
                           .shard = id_,
                           .num_shards = context_->num_shards,
                           .block_bytes = context_->block_bytes,
                           .pull_bytes_max = context_->message_bytes_max};
    store = NewShardStore(table.spec(), place, table.updater());
  }
  return store.get();
}

Shard::Window& Shard::WindowOf(const WorkerKey& worker) {
  return windows_.try_emplace(worker, &context_->early).first->second;
}

// ---- workers ----

void Shard::SetWorker(const proto::WorkerEntry& entry) {
  const std::optional<std::uint64_t> before = progress_.IncarnationOf(entry.rank);
  if (before.has_value() && *before != entry.incarnation) windows_.erase({entry.rank, *before});
  progress_.Set(entry.rank, entry.incarnation, entry.state);
  Window& window = WindowOf({entry.rank, entry.incarnation});
  window.tick_clock = 0;
  // What a dead worker had admitted stays known: it may come back and send it again.
  window.stream.TakeAll();
  if (entry.state == proto::WorkerState::kAlive) return;
  held_.DropWorker(entry.rank);
  if (entry.state == proto::WorkerState::kLeft) {
    windows_.erase({entry.rank, entry.incarnation});
  } else {
    context_->counters->pushes_discarded +=
        contributions_.Discard(entry.rank, entry.incarnation, progress_.ClockOf(entry.rank));
  }
}

// ---- clocks ----

void Shard::TakeTick(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                     std::uint64_t mark) {
  const WorkerKey worker{rank, incarnation};
  if (clock <= progress_.ClockOf(rank)) return;
  Window& window = WindowOf(worker);
  if (clock < window.tick_clock) return;
  window.tick_clock = clock;
  window.tick_mark = mark;
  CountTickIfDue(worker, &window);
}

bool Shard::CountTickIfDue(const WorkerKey& worker, Window* window) {
  if (window->tick_clock == 0 || window->tick_mark > window->stream.admitted()) return false;
  progress_.Advance(worker.first, worker.second, std::exchange(window->tick_clock, 0));
  Settle();
  return true;
}

// In the order of clocks: a pull that asks for the view at clock c is answered after clock c − 1
// has closed and before clock c does, so that what it sees does not depend on how far the slowest
// worker has jumped meanwhile.
void Shard::Settle() {
  const std::uint64_t slowest = progress_.slowest();
  const bool nobody_left = progress_.living() == 0;
  for (;;) {
    const std::optional<std::uint64_t> closing = contributions_.FirstClock();
    const std::optional<std::uint64_t> needed = held_.FirstNeeded();
    const bool may_close = closing.has_value() && (nobody_left || *closing < slowest);
    const bool may_serve = needed.has_value() && *needed <= slowest;
    if (may_close && (!may_serve || *closing < *needed)) {
      Close(*closing);
    } else if (may_serve) {
      ServeNeeding(*needed);
    } else {
      break;
    }
  }
  closed_ = std::max(closed_, slowest);
  ArmTimer();
}

void Shard::Close(std::uint64_t clock) {
  ClosedClock closed = contributions_.Take(clock);
  closed_ = std::max(closed_, clock + 1);
  ++context_->counters->clocks_closed;
  const std::uint32_t ended = progress_.CountEnded(clock);
  for (auto& [target, list] : closed) {
    // Those who ended the clock, and those who gave something to it and then left.
    std::set<std::uint32_t> left_within;
    std::vector<PushView> pushes;
    pushes.reserve(list.size());
    for (Contribution& contribution : list) {
      if (progress_.ClockOf(contribution.rank) <= clock) left_within.insert(contribution.rank);
      pushes.push_back(std::move(contribution.push));
    }
    const Table& table = *context_->tables.Find(target.table);
    const absl::Status applied = StoreOf(table)->ApplyCombined(
        pushes, ended + static_cast<std::uint32_t>(left_within.size()));
    if (applied.ok()) {
      context_->counters->pushes_applied += pushes.size();
    } else {
      context_->counters->apply_failures += pushes.size();
      runtime::LogWarning("clock ", clock, " of table ", table.spec().name, ", shard ", id_,
                          ": accepted pushes could not be applied: ", applied.message());
    }
  }
}

void Shard::ServeNeeding(std::uint64_t needed) {
  for (HeldPull& pull : held_.TakeNeeding(needed)) {
    Serve(*context_->tables.Find(pull.inbound.request.table), pull.inbound, pull.effective);
  }
}

}  // namespace leeway::ps
