#include "ps/shard/shard.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ps/shard/log_entries.h"
#include "ps/store/checks.h"
#include "ps/store/factory/new_shard_store.h"
#include "ps/store/row_widths.h"
#include "runtime/base/mutants.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {

Shard::Shard(std::uint32_t id, ShardContext* context, ShardEffects* effects)
    : id_(id),
      context_(context),
      effects_(effects),
      closed_(context->start_clock),
      contributions_(&context->held),
      held_(&context->held) {}

Shard::~Shard() { context_->loop->Cancel(timer_); }

ShardStore* Shard::StoreOf(const Table& table) {
  std::unique_ptr<ShardStore>& store = stores_[table.id()];
  if (store == nullptr) {
    const StorePlace place{.table = table.id(),
                           .shard = id_,
                           .num_shards = context_->num_shards,
                           .block_bytes = context_->block_bytes,
                           .pull_bytes_max = context_->message_bytes_max,
                           .spare = &context_->spare,
                           .memory = context_->table_memory,
                           .hash_seed = context_->loop->Random()};
    store = NewShardStore(table.spec(), place, table.updater());
  }
  return store.get();
}

// Those of a push or a pull of that clock, where this is the head.
const HeldSettings& Shard::SettingsFor(const Table& table, std::uint64_t clock) const {
  return table.SettingsAt(runtime::Planted<"settings-when-heard">() ? kClockMax : clock);
}

ShardStore* Shard::StoreOf(const Table& table, const HeldSettings& settings) {
  ShardStore* const store = StoreOf(table);
  std::uint32_t& used = settings_[table.id()];
  if (used != settings.number) {
    store->UseSettings(settings.spec, settings.updater.get());
    used = settings.number;
  }
  return store;
}

Shard::ClientSession& Shard::SessionOf(const WorkerKey& worker) {
  return sessions_.try_emplace(worker, &context_->early).first->second;
}

bool Shard::IsReplaced(const WorkerKey& worker) const {
  const auto replaced = replaced_.find(worker.first);
  return replaced != replaced_.end() && replaced->second == worker.second &&
         !runtime::Planted<"window-of-replaced-worker-comes-back">();
}

bool Shard::ClientSession::Reached(const Watermarks& watermarks) const {
  return watermarks.by_class[kAtOnce] <= streams[kAtOnce].admitted() &&
         watermarks.by_class[kHeld] <= streams[kHeld].admitted();
}

// ---- workers ----

void Shard::SetWorker(const proto::WorkerEntry& entry) {
  const std::optional<std::uint64_t> before = clocks_.IncarnationOf(entry.rank);
  const bool replaced = before.has_value() && *before != entry.incarnation;
  if (replaced && !runtime::Planted<"window-of-replaced-worker-kept">()) {
    sessions_.erase({entry.rank, *before});
    replaced_[entry.rank] = *before;
  }
  std::erase_if(sessions_, [&](const auto& session) {
    return session.second.restored && session.first.first == entry.rank &&
           session.first.second != entry.incarnation;
  });
  const std::uint64_t slowest_before = clocks_.slowest();
  clocks_.Set(entry.rank, entry.incarnation, entry.state, entry.late);
  if (!entry.late && context_->start_clock != 0) {
    EnterSession({entry.rank, entry.incarnation}, context_->start_clock, context_->start_clock);
  }
  ClientSession& session = SessionOf({entry.rank, entry.incarnation});
  // The log may have spoken of it before the map did.
  if (session.since != WorkerClocks::kNotEntered) {
    clocks_.Enter(entry.rank, entry.incarnation, session.clock, session.since);
  }
  if (clocks_.slowest() < slowest_before && !runtime::Planted<"slowest-kept-over-return">())
    ForgetSlowest();
  if (!runtime::Planted<"tick-kept-over-return">()) session.tick_clock = 0;
  // What a dead worker had admitted stays known: it may come back and send it again.
  if (!runtime::Planted<"early-of-the-dead-kept">())
    for (Stream& stream : session.streams) stream.TakeAll();
  if (entry.state == proto::WorkerState::kAlive) return;
  if (!runtime::Planted<"held-pulls-of-the-dead-kept">()) held_.DropWorker(entry.rank);
  if (runtime::Planted<"last-pushes-of-leaving-discarded">()) {
    contributions_.Discard(entry.rank, entry.incarnation, clocks_.ClockOf(entry.rank));
  }
  if (entry.state == proto::WorkerState::kLeft) {
    sessions_.erase({entry.rank, entry.incarnation});
  } else {
    if (runtime::Planted<"dead-worker-not-discarded">()) return;
    context_->counters->pushes_discarded += contributions_.Discard(
        entry.rank, entry.incarnation,
        runtime::Planted<"ended-clocks-discarded">() ? 0 : clocks_.ClockOf(entry.rank));
  }
}

// After clocks went back: a worker that was dead pushes again to clocks that versions were said to
// be complete in, or a new head has not yet heard of clocks that the one before knew.
void Shard::ForgetSlowest() {
  for (auto& [id, store] : stores_) store->ForgetSlowest();
}

void Shard::EnterSession(const WorkerKey& worker, std::uint64_t clock, std::uint64_t since) {
  ClientSession& session = SessionOf(worker);
  session.since = since;
  session.clock = std::max(session.clock, clock);
  clocks_.Enter(worker.first, worker.second, clock, since);
}

std::uint64_t Shard::Enter(std::uint32_t rank, std::uint64_t incarnation) {
  if (clocks_.SinceOf(rank) == WorkerClocks::kNotEntered) {
    // A head that has just taken over knows of workers' clocks what the log says: that they have
    // pushed in clocks, where nothing is held.
    const bool anyone = clocks_.living() != 0 && !runtime::Planted<"enters-at-the-slowest">();
    const std::uint64_t clock =
        !anyone
            ? closed_
            : std::max(
                  {closed_,
                   clocks_.fastest() + (runtime::Planted<"enters-beside-the-fastest">() ? 0 : 1),
                   runtime::Planted<"enters-below-what-was-pushed">() ? 0 : pushed_until_});
    EnterSession({rank, incarnation}, clock, clock);
    LogEntry entry;
    entry.header.kind = proto::LogEntryKind::kEnter;
    entry.header.workers = {
        {.rank = rank, .incarnation = incarnation, .clock = clock, .since = clock}};
    if (!runtime::Planted<"entry-of-worker-not-logged">()) AppendToLog(std::move(entry));
  }
  return clocks_.ClockOf(rank);
}

// ---- clocks ----

void Shard::TakeTick(std::uint32_t rank, std::uint64_t incarnation, std::uint64_t clock,
                     std::uint64_t since, const Watermarks& watermarks) {
  const WorkerKey worker{rank, incarnation};
  BeginsAt(worker, since);
  if (clock <= clocks_.ClockOf(rank)) return;
  ClientSession& session = SessionOf(worker);
  if (clock < session.tick_clock && !runtime::Planted<"older-tick-replaces-newer">()) return;
  session.tick_clock = clock;
  session.tick_watermarks = watermarks;
  CountTickIfDue(worker, &session);
}

// A worker that came late begins where the last of all shards has let it in.
void Shard::BeginsAt(const WorkerKey& worker, std::uint64_t since) {
  const std::uint64_t let_in = clocks_.SinceOf(worker.first);
  if (clocks_.IncarnationOf(worker.first) != worker.second) return;
  if (let_in == WorkerClocks::kNotEntered || since <= let_in) return;
  if (runtime::Planted<"begins-where-one-shard-says">()) return;
  EnterSession(worker, since, since);
  Settle();
}

bool Shard::CountTickIfDue(const WorkerKey& worker, ClientSession* session) {
  if (session->tick_clock == 0) return false;
  if (!session->Reached(session->tick_watermarks) && !runtime::Planted<"clock-before-pushes">()) {
    return false;
  }
  const std::uint64_t clock = std::exchange(session->tick_clock, 0);
  clocks_.Advance(worker.first, worker.second, clock);
  Settle();
  return true;
}

// In the order of clocks: a pull that asks for the view at clock c is answered after clock c − 1
// has closed and before clock c does, so that what it sees does not depend on how far the slowest
// worker has jumped meanwhile.
void Shard::Settle() {
  const std::uint64_t slowest = clocks_.slowest();
  const bool nobody_left = clocks_.living() == 0 && !runtime::Planted<"last-clock-stays-open">();
  for (;;) {
    const std::optional<std::uint64_t> closing = contributions_.FirstClock();
    const std::optional<std::uint64_t> needed = held_.FirstNeeded();
    const bool may_close =
        closing.has_value() &&
        (nobody_left ||
         *closing < slowest + (runtime::Planted<"closes-with-slowest-inside">() ? 1 : 0));
    const bool may_serve = needed.has_value() && *needed <= slowest;
    const bool first = may_close && runtime::Planted<"closes-before-it-serves">();
    if (first || (may_close && (!may_serve || *closing < *needed))) {
      Close(*closing);
    } else if (may_serve) {
      ServeNeeding(*needed);
    } else {
      break;
    }
  }
  if (!runtime::Planted<"empty-clocks-stay-open">()) closed_ = std::max(closed_, slowest);
  clocks_.ForgetEndedBelow(runtime::Planted<"closed-workers-forgotten-early">() ? kClockMax
                                                                                : closed_);
  FinishCutIfDue();
  ArmTimer();
}

void Shard::Close(std::uint64_t clock) {
  if (cut_ != nullptr &&
      clock >= cut_->clock() + (runtime::Planted<"cut-after-its-clock-closes">() ? 1 : 0)) {
    FinishCut();
  }
  ClosedClock closed = contributions_.Take(clock);
  closed_ = std::max(closed_, clock + (runtime::Planted<"closes-a-clock-short">() ? 0 : 1));
  ++context_->counters->clocks_closed;
  for (auto& [target, list] : closed) CloseTarget(clock, target, std::move(list));
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kClose;
  entry.header.clock = clock;
  if (effects_->has_follower() && !runtime::Planted<"close-without-windows">()) {
    entry.header.workers = Windows(/*with_held=*/false);
  }
  AppendToLog(std::move(entry));
}

void Shard::CloseTarget(std::uint64_t clock, const Target& target, std::vector<Contribution> list) {
  // Those who ended the clock, and those who gave something to it and then left.
  std::set<WorkerKey> left_within;
  std::vector<PushView> pushes;
  pushes.reserve(list.size());
  for (Contribution& contribution : list) {
    const WorkerKey worker{contribution.rank, contribution.incarnation};
    if (!clocks_.HasEnded(worker.first, worker.second, clock)) left_within.insert(worker);
    // None: it has left, or another process has its rank.
    const auto session = sessions_.find(worker);
    if (session != sessions_.end() && !runtime::Planted<"in-state-not-noted">()) {
      const bool last = runtime::Planted<"in-state-of-the-last-target">();
      std::uint64_t& in_state = session->second.in_state;
      in_state = std::max(last ? 0 : in_state, contribution.sequence);
    }
    pushes.push_back(std::move(contribution.push));
  }
  const Table& table = *context_->tables.Find(target.table);
  const std::uint32_t contributors =
      clocks_.CountEnded(clock) + (runtime::Planted<"divisor-without-those-who-left">()
                                       ? 0
                                       : static_cast<std::uint32_t>(left_within.size()));
  absl::Status applied = ApplyAndLog(table, clock, pushes, contributors);
  // Rows that do not fit together were found before anything was changed.
  if (absl::IsInvalidArgument(applied) && table.spec().kind == TableKind::kRagged &&
      !runtime::Planted<"misfits-drop-everything">()) {
    DropMisfits(table, clock, list, &pushes);
    if (pushes.empty()) return;
    applied = ApplyAndLog(table, clock, pushes, contributors);
  }
  if (applied.ok()) {
    context_->counters->pushes_applied += pushes.size();
    return;
  }
  context_->counters->apply_failures += pushes.size();
  runtime::LogWarning("clock ", clock, " of table ", table.spec().name, ", shard ", id_,
                      ": accepted pushes could not be applied: ", applied.message());
}

// Pushes that fitted one by one need not fit together: two may give a new row different widths.
// Then the one that comes later in the order of workers is left out, and no other. `list`: whose
// they are.
void Shard::DropMisfits(const Table& table, std::uint64_t clock, std::span<const Contribution> list,
                        std::vector<PushView>* pushes) {
  const std::vector<absl::Status> fit = CheckWidthsTogether(*StoreOf(table), *pushes);
  std::vector<PushView> fitting;
  for (std::size_t i = 0; i < fit.size(); ++i) {
    if (fit[i].ok()) {
      fitting.push_back(std::move((*pushes)[i]));
      continue;
    }
    ++context_->counters->apply_failures;
    runtime::LogWarning("clock ", clock, " of table ", table.spec().name, ", shard ", id_,
                        ": an accepted push of worker ", list[i].rank,
                        " could not be applied: ", fit[i].message());
  }
  *pushes = std::move(fitting);
}

absl::Status Shard::ApplyAndLog(const Table& table, std::uint64_t clock,
                                const std::vector<PushView>& pushes, std::uint32_t contributors) {
  const HeldSettings& settings = SettingsFor(table, clock);
  ShardStore* store = StoreOf(table, settings);
  const std::uint64_t block = pushes.front().block;
  const double rate = LastRate(pushes);
  const VersionBy by = store->NextVersion(block, table.codec_schedule(), closed_);
  if (!effects_->has_follower()) {
    LEEWAY_RETURN_IF_ERROR(store->ApplyCombined(pushes, contributors));
    return store->MakeVersion(block, closed_, rate, by);
  }
  absl::StatusOr<AggregatedPush> aggregate = store->Combine(pushes, contributors);
  if (!aggregate.ok()) return aggregate.status();
  LEEWAY_RETURN_IF_ERROR(store->ApplyAggregate(*aggregate));
  LEEWAY_RETURN_IF_ERROR(store->MakeVersion(block, closed_, rate, by));
  LogEntry update = UpdateEntry(table, *aggregate, by);
  update.header.index = index_ + 1;
  update.header.settings = settings.number;
  effects_->Log(std::move(update));
  return absl::OkStatus();
}

void Shard::LogConfirm() {
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kConfirm;
  AppendToLog(std::move(entry));
}

void Shard::AppendToLog(LogEntry entry) {
  entry.header.index = ++index_;
  if (effects_->has_follower()) effects_->Log(std::move(entry));
}

void Shard::ServeNeeding(std::uint64_t needed) {
  for (PendingPull& pull : held_.TakeNeeding(needed)) {
    Serve(*context_->tables.Find(pull.inbound.request.table), pull.inbound, pull.needed,
          pull.effective);
  }
}

}  // namespace leeway::ps
