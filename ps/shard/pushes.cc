#include "ps/shard/pushes.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::ps {
namespace {

// The target of a push within its table: a sparse one is a target as a whole.
std::uint64_t BlockOf(const proto::Request& request) {
  return request.kind == TableKind::kDense ? request.block : 0;
}

// Of a mean a late push counts as it would have, had it been one of the count of its clock.
double WeightOfOne(const PreparedTableSettings& settings, double weight, bool late) {
  const bool mean = settings.spec.aggregate == Aggregate::kMean;
  return late && mean ? weight / settings.spec.consistency.count : weight;
}

absl::Status Refusal(const Table& table, const proto::Request& request, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("a push of worker ", request.id.worker, " to table ", table.spec().name, " ",
                   what, ", which the table refuses (TableSpec::nonfinite)"));
}

// OK where the table counts such pushes alone.
absl::Status RefuseIfToldTo(const Table& table, const proto::Request& request,
                            absl::string_view what) {
  const bool refuses = table.SettingsAt(request.clock).spec.nonfinite == NonFinite::kRefuse;
  return refuses ? Refusal(table, request, what) : absl::OkStatus();
}

// A worker's changes of tables wait for its pushes, so one without is of a worker that broke the
// protocol.
absl::Status CheckSettingsKnown(const Table& table, std::uint64_t clock) {
  if (table.KnowsSettingsOf(clock)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a push of clock ", clock, " to table ", table.spec().name,
                   ", which has been changed more often since then than the cluster map shows"));
}

}  // namespace

// Whether the push, which is to be multiplied by `weight`, holds NaN or infinity, or will then.
absl::StatusOr<bool> Pushes::CheckFinite(const Table& table, const proto::Request& request,
                                         const PushView& push, double weight) {
  bool nonfinite = false;
  const char* what = "holds NaN or infinity";
  const ShardStore& store = *state_->stores.Of(table);
  if (push.codec == 0) {
    nonfinite = HasNonFinite(request.dtype, push.values.bytes());
  } else {
    LEEWAY_RETURN_IF_ERROR(store.Check(push));
    LEEWAY_ASSIGN_OR_RETURN(nonfinite, store.EncodedNonFinite(push));
  }
  if (!nonfinite && weight > 1) {
    what = "holds values that are infinite when they are multiplied by its weight";
    LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush weighted,
                            Weighted(store, request.dtype, push, weight));
    nonfinite = HasNonFinite(ComputeType(request.dtype), weighted.values.bytes());
  }
  if (nonfinite) LEEWAY_RETURN_IF_ERROR(NoteNonFinite(table, request, what));
  return nonfinite;
}

absl::Status Pushes::NoteNonFinite(const Table& table, const proto::Request& request,
                                   absl::string_view what) {
  ++state_->context->counters->nonfinite_pushes;
  return RefuseIfToldTo(table, request, what);
}

// The worker has added up rows of one key, and they wrapped around.
absl::Status Pushes::NoteWrapped(const Table& table, const proto::Request& request) {
  ++state_->context->counters->overflows;
  return RefuseIfToldTo(
      table, request,
      "has several rows of one key, whose integers wrap around when they are added up");
}

// Of a push that is applied now, to a table that refuses what is not finite.
absl::Status Pushes::CheckOverflow(const Table& table, const proto::Request& request,
                                   const ShardStore& store, const PushView& push, double weight) {
  if (ComputeType(request.dtype) == request.dtype && !IsInteger(request.dtype)) {
    return absl::OkStatus();
  }
  bool overflows = false;
  if (weight == 1) {
    LEEWAY_ASSIGN_OR_RETURN(overflows, store.WouldOverflow(push));
  } else {
    LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush weighted,
                            Weighted(store, request.dtype, push, weight));
    LEEWAY_ASSIGN_OR_RETURN(overflows, store.SumWouldOverflow(weighted));
  }
  if (!overflows) return absl::OkStatus();
  ++state_->context->counters->overflows;
  return Refusal(table, request,
                 IsInteger(request.dtype) ? "would make an integer wrap around"
                                          : "would make a value NaN or infinite");
}

// Not an error of the worker's: it is told that the push counts nowhere.
absl::Status Pushes::Dropped(const Table& table, const proto::Request& request,
                             const PushFacts& facts) const {
  ++state_->context->counters->late_dropped;
  const std::string text =
      table.closes_by_count()
          ? absl::StrCat("clock ", facts.closed, " is open")
          : absl::StrCat("the values that it was computed from have had ", facts.tau, " updates");
  return absl::CancelledError(absl::StrCat("dropped: a push of clock ", request.clock, " to table ",
                                           table.spec().name, " (",
                                           table.spec().consistency.ToString(), "); ", text));
}

absl::Status Pushes::CheckAgain(const Table& table, const Inbound& inbound) {
  const PushView push = ToPush(inbound);
  LEEWAY_RETURN_IF_ERROR(CheckFinite(table, inbound.request, push, 1).status());
  return state_->stores.Of(table)->Check(push);
}

absl::Status Pushes::Take(const Table& table, const Inbound& inbound, bool* held) {
  bool begun = false;
  try {
    return Take(table, inbound, held, &begun);
  } catch (const std::bad_alloc&) {
    return OutOfMemory(table, inbound, begun);
  }
}

// `begun`: some of the push's rows may have been updated. Then it was neither refused nor applied:
// replicas go on without this server, and where there are none the worker is told that the outcome
// is not known.
absl::Status Pushes::OutOfMemory(const Table& table, const Inbound& inbound, bool begun) {
  const std::string text = absl::StrCat("there is no memory left on this server for a push of ",
                                        inbound.bytes(), " bytes to table ", table.spec().name,
                                        ": give it more, lower LEEWAY_TABLE_BYTES_MAX so that it "
                                        "refuses sooner, or use more servers");
  if (!begun) return absl::ResourceExhaustedError(text);
  if (!state_->effects->has_follower()) return absl::UnknownError(text);
  state_->effects->Broken(absl::ResourceExhaustedError(absl::StrCat(
      text, "; as some of its rows have been updated, the replicas go on without this server")));
  return absl::UnavailableError(text);
}

absl::Status Pushes::Take(const Table& table, const Inbound& inbound, bool* held, bool* begun) {
  const proto::Request& request = inbound.request;
  PushView push = ToPush(inbound);
  const std::uint64_t bytes = inbound.bytes();
  LEEWAY_RETURN_IF_ERROR(CheckSettingsKnown(table, request.clock));
  const PreparedTableSettings& settings = table.SettingsFor(request.clock);
  const bool weighted = table.is_weighted();
  PushFacts facts{.clock = request.clock, .closed = state_->ClosedFor(table)};
  if (weighted) {
    LEEWAY_ASSIGN_OR_RETURN(facts.tau, StalenessOf(table, request));
    table.CountPushStaleness(facts.tau);
  }
  ShardStore* store = state_->stores.Of(table, settings);
  const bool begins = !table.is_bsp() && state_->stores.BeginsWithPush(table, request.block);
  const PushDecision decision = begins ? PushDecision{} : settings.policy.Push(facts);
  const bool at_once = decision.action == PushDecision::Action::kApply;
  *held = decision.action == PushDecision::Action::kHold;
  // A push that is applied now whatever its values are is looked at while it is applied.
  const bool look_first = !at_once || weighted || table.is_compensated() ||
                          settings.spec.nonfinite == NonFinite::kRefuse;
  const bool late = at_once && table.closes_by_count() && request.clock < facts.closed;
  const double weight = WeightOfOne(settings, decision.weight, late);
  bool nonfinite = false;
  if (look_first) {
    LEEWAY_ASSIGN_OR_RETURN(nonfinite,
                            CheckFinite(table, request, push, table.is_compensated() ? 1 : weight));
  }
  if (request.rows_wrapped) LEEWAY_RETURN_IF_ERROR(NoteWrapped(table, request));
  if (look_first && at_once && settings.spec.nonfinite == NonFinite::kRefuse) {
    LEEWAY_RETURN_IF_ERROR(CheckOverflow(table, request, *store, push, weight));
  }
  LEEWAY_RETURN_IF_ERROR(store->CheckMemory(push));
  if (look_first) LEEWAY_RETURN_IF_ERROR(store->Check(push));
  switch (decision.action) {
    case PushDecision::Action::kDrop:
      return Dropped(table, request, facts);
    case PushDecision::Action::kHold:
      LEEWAY_RETURN_IF_ERROR(state_->CheckRoomToHold(bytes));
      open_clocks_->Hold(table, decision.clock, inbound, std::move(push), bytes);
      return absl::OkStatus();
    case PushDecision::Action::kCollect:
      return Collect(table, settings, weight, push, inbound, begun);
    default:
      break;
  }
  if (table.is_compensated()) {
    return ApplyCompensated(table, settings, nonfinite, weight, push, inbound, begun);
  }
  state_->context->counters->late_pushes += late;
  return ApplyNow(table, settings, look_first, weight, push, inbound, begun);
}

// A gradient that is compensated for its delay, or as it is where it is not known what its worker
// has pulled. `nonfinite`: it is not finite, and the table takes it.
absl::Status Pushes::ApplyCompensated(const Table& table, const PreparedTableSettings& settings,
                                      bool nonfinite, double weight, const PushView& push,
                                      const Inbound& inbound, bool* begun) {
  LEEWAY_ASSIGN_OR_RETURN(std::optional<DelayCompensation::Compensated> compensated,
                          Compensate(table, settings, push, inbound));
  Inbound changed = inbound;
  if (compensated.has_value()) {
    changed.request.codec = 0;
    changed.request.elements = compensated->gradient.size() / SizeOf(table.spec().dtype);
    changed.payload = {compensated->gradient};
  }
  const PushView gradient = ToPush(changed);
  if (!nonfinite && compensated.has_value() &&
      HasNonFinite(table.spec().dtype, gradient.values.bytes())) {
    LEEWAY_RETURN_IF_ERROR(NoteNonFinite(table, changed.request,
                                         "holds values that are infinite when it is compensated"));
    nonfinite = true;
  }
  if (!nonfinite) {
    LEEWAY_ASSIGN_OR_RETURN(nonfinite, CheckFinite(table, changed.request, gradient, weight));
  }
  LEEWAY_RETURN_IF_ERROR(
      ApplyNow(table, settings, /*checked=*/true, weight, gradient, changed, begun));
  if (!compensated.has_value()) {
    ++state_->context->counters->uncompensated;
  } else if (!nonfinite) {
    compensation_->NoteApplied(table.id(), inbound.request.block, *std::move(compensated));
  }
  return absl::OkStatus();
}

// nullopt: it is not known what its worker has pulled.
absl::StatusOr<std::optional<DelayCompensation::Compensated>> Pushes::Compensate(
    const Table& table, const PreparedTableSettings& settings, const PushView& push,
    const Inbound& inbound) {
  const proto::Request& request = inbound.request;
  ShardStore* const store = state_->stores.Of(table, settings);
  LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush plain,
                          Weighted(*store, table.spec().dtype, push, 1));
  PullView view;
  view.block = request.block;
  view.elements = plain.values.size() / SizeOf(table.spec().dtype);
  view.plain = true;
  LEEWAY_ASSIGN_OR_RETURN(const PullResult now, store->Pull(view));
  return compensation_->Compensate(request.id.worker, table.id(), request.block,
                                   settings.spec.consistency, table.spec().dtype, plain.values,
                                   now.payload[0]);
}

bool Pushes::MustWait(const Table& table, const proto::Request& request) const {
  if (!table.closes_by_count() || !HasPush(request.op)) return false;
  const PushFacts facts{.clock = request.clock, .closed = state_->ClosedFor(table)};
  return table.newest_settings().policy.Push(facts).action == PushDecision::Action::kWait;
}

// A worker computes from what a head of this shard has sent it. What an earlier head has sent is
// not known, but had no updates that the shard has not had.
absl::StatusOr<std::uint64_t> Pushes::StalenessOf(const Table& table,
                                                  const proto::Request& request) const {
  const std::uint64_t block = BlockOf(request);
  const std::uint64_t updates = state_->stores.UpdatesOf(table, block);
  const std::optional<std::uint64_t> sent = state_->sessions.UpdatesSentTo(
      {request.id.worker, request.id.incarnation}, table.id(), block);
  if (request.read_updates <= sent.value_or(updates)) return updates - request.read_updates;
  return absl::InvalidArgumentError(absl::StrCat(
      "a push of worker ", request.id.worker, " to table ", table.spec().name,
      " says that it was computed from values with ", request.read_updates, " updates; those that ",
      sent.has_value() ? "it was sent had " : "there are have had ", sent.value_or(updates)));
}

// `checked`: NaN and infinity have been looked for.
absl::Status Pushes::ApplyNow(const Table& table, const PreparedTableSettings& settings,
                              bool checked, double weight, const PushView& push,
                              const Inbound& inbound, bool* begun) {
  const proto::Request& request = inbound.request;
  // Before anything has changed, since there may be no memory for it.
  LogEntry entry = state_->effects->has_follower() ? PushEntry(inbound) : LogEntry();
  entry.header.weight = weight;
  ShardCut* const cut = cuts_->current();
  if (cut != nullptr) {
    cut->BeforePush(table, request.clock);
  }
  bool nonfinite = false;
  *begun = request.kind != TableKind::kDense;
  LEEWAY_RETURN_IF_ERROR(
      state_->stores.Apply(table, settings, push, weight, checked ? nullptr : &nonfinite));
  *begun = true;
  if (nonfinite) ++state_->context->counters->nonfinite_pushes;
  state_->CountOverflow(state_->stores.Of(table));
  if (cut != nullptr) {
    cut->AfterPush(table, inbound, {.weight = weight});
  }
  state_->pushed_until = std::max(state_->pushed_until, request.clock + 1);
  ++state_->context->counters->pushes_applied;
  entry.header.table_settings = settings.number;
  state_->AppendToLog(std::move(entry));
  return absl::OkStatus();
}

// ---- updates of handlers ----

absl::Status Pushes::TakeCall(const std::vector<Inbound>& updates, LogEntry call) {
  bool begun = false;
  const auto table_of = [&](const Inbound& update) -> const Table& {
    return *state_->context->tables.Find(update.request.table);
  };
  try {
    for (const Inbound& update : updates) {
      LEEWAY_RETURN_IF_ERROR(CheckEffect(table_of(update), update));
    }
    return ApplyEffects(updates, std::move(call), &begun);
  } catch (const std::bad_alloc&) {
    if (updates.empty()) return absl::ResourceExhaustedError("there is no memory left for a call");
    return OutOfMemory(table_of(updates.front()), updates.front(), begun);
  }
}

absl::Status Pushes::CheckEffect(const Table& table, const Inbound& update) {
  const proto::Request& request = update.request;
  const PushView push = ToPush(update);
  LEEWAY_RETURN_IF_ERROR(CheckSettingsKnown(table, request.clock));
  const PreparedTableSettings& settings = table.SettingsFor(request.clock);
  LEEWAY_RETURN_IF_ERROR(CheckFinite(table, request, push, 1).status());
  const ShardStore* const store = state_->stores.Of(table, settings);
  if (settings.spec.nonfinite == NonFinite::kRefuse) {
    LEEWAY_RETURN_IF_ERROR(CheckOverflow(table, request, *store, push, 1));
  }
  const absl::Status fits = store->Check(push);
  return fits.ok() ? store->CheckMemory(push) : fits;
}

// No two updates are of one target, so that none of them makes another one fail.
absl::Status Pushes::ApplyEffects(const std::vector<Inbound>& updates, LogEntry call, bool* begun) {
  ShardCut* const cut = cuts_->current();
  std::vector<LogEntry> effects;
  for (const Inbound& update : updates) {
    const Table& table = *state_->context->tables.Find(update.request.table);
    const std::uint32_t settings = table.SettingsFor(update.request.clock).number;
    if (state_->effects->has_follower()) effects.push_back(EffectEntry(update, settings));
    if (cut != nullptr) cut->BeforePush(table, update.request.clock);
  }
  for (const Inbound& update : updates) {
    const Table& table = *state_->context->tables.Find(update.request.table);
    *begun = true;
    LEEWAY_RETURN_IF_ERROR(state_->stores.Apply(table, table.SettingsFor(update.request.clock),
                                                ToPush(update), /*weight=*/1,
                                                /*nonfinite=*/nullptr));
    state_->CountOverflow(state_->stores.Of(table));
    if (cut != nullptr) cut->AfterPush(table, update, {});
    ++state_->context->counters->pushes_applied;
  }
  state_->pushed_until = std::max(state_->pushed_until, call.header.clock + 1);
  for (LogEntry& effect : effects) {
    effect.header.index = state_->index + 1;  // that of the call, which follows
    state_->effects->Log(std::move(effect));
  }
  state_->AppendToLog(std::move(call));
  return absl::OkStatus();
}

// ---- pushes that are applied together ----

absl::Status Pushes::Collect(const Table& table, const PreparedTableSettings& settings,
                             double weight, const PushView& push, const Inbound& inbound,
                             bool* begun) {
  const proto::Request& request = inbound.request;
  LogEntry entry = state_->effects->has_follower() ? PushEntry(inbound) : LogEntry();
  entry.header.weight = weight;
  entry.header.collected = true;
  LEEWAY_ASSIGN_OR_RETURN(const AggregatedPush weighted,
                          Weighted(*state_->stores.Of(table), table.spec().dtype, push, weight));
  CollectedPushes& collected = state_->stores.CollectedOf(table);
  LEEWAY_RETURN_IF_ERROR(collected.CheckMemory(weighted));
  const std::uint32_t enough = settings.policy.Enough(state_->clocks.living());
  ShardCut* const cut = cuts_->current();
  if (cut != nullptr) cut->BeforePush(table, request.clock);
  LEEWAY_RETURN_IF_ERROR(collected.Add(weighted));
  *begun = true;
  if (collected.TakeOverflow()) ++state_->context->counters->overflows;
  if (cut != nullptr) {
    cut->AfterPush(table, inbound,
                   {.weight = weight,
                    .collected = true,
                    .enough = enough,
                    .mean_of = MeanOf(settings, enough)});
  }
  state_->pushed_until = std::max(state_->pushed_until, request.clock + 1);
  ++state_->context->counters->pushes_collected;
  state_->AppendToLog(std::move(entry));
  const std::uint64_t block = BlockOf(request);
  if (enough != 0 && collected.count(block) >= enough) {
    ApplyCollectedOf(table, settings, block, request.clock);
  }
  return absl::OkStatus();
}

void Pushes::ApplyCollected(const Table& table, std::uint64_t clock, std::uint32_t enough) {
  const PreparedTableSettings& settings = table.SettingsFor(clock);
  const CollectedPushes& collected = state_->stores.CollectedOf(table);
  for (const std::uint64_t block : collected.blocks()) {
    if (collected.count(block) >= enough) ApplyCollectedOf(table, settings, block, clock);
  }
}

// Replicas are told first that the clock has closed: one that leads before it has heard of all its
// targets applies the rest (FinishClosing).
void Pushes::CloseByCount(const Table& table, std::uint64_t open, std::uint64_t closed) {
  const auto tell = [&](std::uint64_t clock) {
    state_->AppendToLog(
        CollectedEntry(table, /*block=*/0, clock, /*mean_of=*/0, table.SettingsFor(open).number));
  };
  tell(open);
  ApplyCollected(table, open);
  if (closed > open + 1) tell(closed - 1);
}

void Pushes::FinishClosing() {
  for (const std::uint32_t id : std::exchange(state_->closing, {})) {
    const Table& table = *state_->context->tables.Find(id);
    ApplyCollected(table, state_->ClosedOf(table) - 1);
  }
}

// What a sum of so many collected pushes is divided by.
std::uint32_t Pushes::MeanOf(const PreparedTableSettings& settings, std::uint32_t count) const {
  const bool mean = settings.spec.aggregate == Aggregate::kMean;
  return mean ? settings.policy.MeanOf(state_->clocks.living(), count) : 1;
}

void Pushes::ApplyCollectedOf(const Table& table, const PreparedTableSettings& settings,
                              std::uint64_t block, std::uint64_t clock) {
  const std::uint32_t count = state_->stores.CollectedOf(table).count(block);
  const std::uint32_t mean_of = MeanOf(settings, count);
  if (ShardCut* const cut = cuts_->current(); cut != nullptr) cut->BeforePush(table, clock);
  const absl::Status applied = state_->stores.ApplyCollected(table, settings, block, mean_of);
  state_->CountOverflow(state_->stores.Of(table));
  (applied.ok() ? state_->context->counters->pushes_applied
                : state_->context->counters->apply_failures) += count;
  if (!applied.ok()) {
    runtime::LogWarning("table ", table.spec().name, ", shard ", state_->id, ": ", count,
                        " collected pushes could not be applied: ", applied.message());
  }
  state_->AppendToLog(CollectedEntry(table, block, clock, mean_of, settings.number));
}

}  // namespace leeway::ps
