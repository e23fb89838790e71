#include "ps/shard/open_clocks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "ps/shard/state/log_entry_conversion.h"
#include "ps/store/checks.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {

void OpenClocks::Hold(const Table& table, std::uint64_t clock, const Inbound& inbound,
                      PushView push, std::uint64_t bytes) {
  const proto::Request& request = inbound.request;
  if (clock != request.clock) ++state_->context->counters->late_pushes;
  if (!state_->effects->provisional()) {
    unkept_until_ = std::max(unkept_until_, clock + 1);
  }
  const bool dense = request.kind == TableKind::kDense;
  contributions_.Add(clock, {.table = table.id(), .block = dense ? request.block : 0},
                     {.rank = request.id.worker,
                      .incarnation = request.id.incarnation,
                      .sequence = request.id.sequence,
                      .bytes = bytes,
                      .elements = request.elements,
                      .push = std::move(push)});
}

bool OpenClocks::HoldsUnkept() const {
  const std::optional<std::uint64_t> first = contributions_.FirstClock();
  return first.has_value() && *first < unkept_until_;
}

// ---- closing ----

void OpenClocks::Close(std::uint64_t clock) {
  ClosedClock closed = contributions_.Take(clock);
  state_->closed = std::max(state_->closed, clock + 1);
  ++state_->context->counters->clocks_closed;
  for (auto& [target, list] : closed) CloseTarget(clock, target, std::move(list));
  LogEntry entry;
  entry.header.kind = proto::LogEntryKind::kClose;
  entry.header.clock = clock;
  if (state_->effects->has_follower()) {
    entry.header.workers = state_->ExportSessions();
  }
  state_->AppendToLog(std::move(entry));
}

void OpenClocks::CloseTarget(std::uint64_t clock, const Target& target,
                             std::vector<Contribution> list) {
  // A mean is over the workers that ended the clock, and those that gave something to it and then
  // left.
  std::set<WorkerKey> left_within;
  std::vector<PushView> pushes;
  pushes.reserve(list.size());
  for (Contribution& contribution : list) {
    const WorkerKey worker{contribution.rank, contribution.incarnation};
    if (!state_->clocks.HasEnded(worker.first, worker.second, clock)) left_within.insert(worker);
    // Null: the worker has left, or another process has its rank.
    ClientSession* const session = state_->sessions.Find(worker);
    if (session != nullptr) {
      session->in_state = std::max(session->in_state, contribution.sequence);
    }
    pushes.push_back(std::move(contribution.push));
  }
  const Table& table = *state_->context->tables.Find(target.table);
  std::uint32_t contributors =
      state_->clocks.CountEnded(clock) + static_cast<std::uint32_t>(left_within.size());
  if (state_->stores.BeginsWithPush(table, target.block)) {
    pushes.resize(1);
    contributors = 1;
  }
  absl::Status applied = ApplyAndLog(table, clock, pushes, contributors);
  // Rows that do not fit together were found before anything was changed.
  if (absl::IsInvalidArgument(applied) && table.spec().kind == TableKind::kRagged) {
    DropMisfits(table, clock, list, &pushes);
    if (pushes.empty()) return;
    applied = ApplyAndLog(table, clock, pushes, contributors);
  }
  if (applied.ok()) {
    state_->context->counters->pushes_applied += pushes.size();
    return;
  }
  state_->context->counters->apply_failures += pushes.size();
  runtime::LogWarning("clock ", clock, " of table ", table.spec().name, ", shard ", state_->id,
                      ": accepted pushes could not be applied: ", applied.message());
}

// Pushes that fitted one by one need not fit together: two may give a new row different widths.
// Then the one that comes later in the order of workers is left out, and no other. `list`: the
// contributions that the pushes are of.
void OpenClocks::DropMisfits(const Table& table, std::uint64_t clock,
                             std::span<const Contribution> list, std::vector<PushView>* pushes) {
  const std::vector<absl::Status> fit = CheckWidthsTogether(*state_->stores.Of(table), *pushes);
  std::vector<PushView> fitting;
  for (std::size_t i = 0; i < fit.size(); ++i) {
    if (fit[i].ok()) {
      fitting.push_back(std::move((*pushes)[i]));
      continue;
    }
    ++state_->context->counters->apply_failures;
    runtime::LogWarning("clock ", clock, " of table ", table.spec().name, ", shard ", state_->id,
                        ": an accepted push of worker ", list[i].rank,
                        " could not be applied: ", fit[i].message());
  }
  *pushes = std::move(fitting);
}

absl::Status OpenClocks::ApplyAndLog(const Table& table, std::uint64_t clock,
                                     const std::vector<PushView>& pushes,
                                     std::uint32_t contributors) {
  const PreparedTableSettings& settings = table.SettingsFor(clock);
  ShardStore* store = state_->stores.Of(table, settings);
  const std::uint64_t block = pushes.front().block;
  const double rate = LastRate(pushes);
  const VersionBy by = state_->stores.BeginsWithPush(table, block)
                           ? VersionBy{.codec = 0, .whole = true}
                           : store->NextVersion(block, table.codec_schedule(), state_->closed);
  if (!state_->effects->has_follower()) {
    LEEWAY_RETURN_IF_ERROR(store->ApplyCombined(pushes, contributors));
    state_->CountOverflow(store);
    return store->MakeVersion(block, state_->closed, rate, by);
  }
  absl::StatusOr<AggregatedPush> aggregate = store->Combine(pushes, contributors);
  if (!aggregate.ok()) return aggregate.status();
  LEEWAY_RETURN_IF_ERROR(store->ApplyAggregate(*aggregate));
  state_->CountOverflow(store);
  LEEWAY_RETURN_IF_ERROR(store->MakeVersion(block, state_->closed, rate, by));
  LogEntry update = UpdateEntry(table, *aggregate, by);
  update.header.index = state_->index + 1;  // that of the Close, which follows
  update.header.table_settings = settings.number;
  state_->effects->Log(std::move(update));
  return absl::OkStatus();
}

// ---- changes of the head ----

std::vector<LogEntry> OpenClocks::HandOver() {
  std::vector<LogEntry> entries;
  contributions_.ForEach([&](std::uint64_t clock, const Target& target,
                             const Contribution& contribution) {
    entries.push_back(HeldEntry(*state_->context->tables.Find(target.table), clock, contribution));
  });
  contributions_.Clear();
  unkept_until_ = 0;
  return entries;
}

void OpenClocks::TakeHeld(const LogEntry& entry) {
  const proto::Replicate& header = entry.header;
  // A table that is not installed here has been created by nobody: no push to it was accepted.
  if (state_->context->tables.Find(header.table) == nullptr) return;
  const bool dense = header.table_kind == TableKind::kDense;
  contributions_.Add(header.clock, {.table = header.table, .block = dense ? header.block : 0},
                     {.rank = header.worker,
                      .incarnation = header.incarnation,
                      .sequence = header.sequence,
                      .bytes = entry.bytes(),
                      .elements = header.elements,
                      .push = ToPush(entry)});
}

}  // namespace leeway::ps
