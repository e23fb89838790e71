#include "ps/shard/pushes.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {

absl::Status Pushes::CheckFinite(const Table& table, const proto::Request& request,
                                 const PushView& push) {
  bool nonfinite = false;
  if (push.codec == 0) {
    nonfinite = HasNonFinite(request.dtype, push.values.bytes());
  } else {
    LEEWAY_RETURN_IF_ERROR(state_->stores.Of(table)->Check(push));
    LEEWAY_ASSIGN_OR_RETURN(nonfinite, state_->stores.Of(table)->EncodedNonFinite(push));
  }
  if (!nonfinite) return absl::OkStatus();
  ++state_->context->counters->nonfinite_pushes;
  if (table.SettingsAt(request.clock).spec.nonfinite != NonFinite::kRefuse) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a push of worker ", request.id.worker, " to table ", table.spec().name,
                   " holds NaN or infinity, which the table refuses (TableSpec::nonfinite)"));
}

// Of a push that is applied now, to a table that refuses what is not finite.
absl::Status Pushes::CheckOverflow(const Table& table, const proto::Request& request,
                                   const ShardStore& store, const PushView& push) {
  if (ComputeType(request.dtype) == request.dtype && !IsInteger(request.dtype)) {
    return absl::OkStatus();
  }
  LEEWAY_ASSIGN_OR_RETURN(const bool overflows, store.WouldOverflow(push));
  if (!overflows) return absl::OkStatus();
  ++state_->context->counters->overflows;
  return absl::InvalidArgumentError(absl::StrCat(
      "a push of worker ", request.id.worker, " to table ", table.spec().name, " would make ",
      IsInteger(request.dtype) ? "an integer wrap around" : "a value NaN or infinite",
      ", which the table refuses (TableSpec::nonfinite)"));
}

absl::Status Pushes::CheckAgain(const Table& table, const Inbound& inbound) {
  const PushView push = ToPush(inbound);
  LEEWAY_RETURN_IF_ERROR(CheckFinite(table, inbound.request, push));
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
  // A worker's changes of tables wait for its pushes, so this one is of a worker that broke the
  // protocol.
  if (!table.KnowsSettingsOf(request.clock)) {
    return absl::FailedPreconditionError(
        absl::StrCat("a push of clock ", request.clock, " to table ", table.spec().name,
                     ", which has been changed more often since then than the cluster map shows"));
  }
  const PreparedTableSettings& settings = table.SettingsFor(request.clock);
  const PushDecision decision = settings.policy.Push(request.clock, state_->closed);
  *held = decision.hold;
  // A push that is applied now whatever its values are is looked at while it is applied.
  const bool look_first = decision.hold || settings.spec.nonfinite == NonFinite::kRefuse;
  if (look_first) LEEWAY_RETURN_IF_ERROR(CheckFinite(table, request, push));
  ShardStore* store = state_->stores.Of(table, settings);
  if (look_first && !decision.hold) {
    LEEWAY_RETURN_IF_ERROR(CheckOverflow(table, request, *store, push));
  }
  LEEWAY_RETURN_IF_ERROR(store->CheckMemory(push));
  if (!decision.hold) return ApplyNow(table, settings, store, look_first, push, inbound, begun);
  LEEWAY_RETURN_IF_ERROR(store->Check(push));
  LEEWAY_RETURN_IF_ERROR(state_->CheckRoomToHold(bytes));
  open_clocks_->Hold(table, decision.clock, inbound, std::move(push), bytes);
  return absl::OkStatus();
}

// `checked`: NaN and infinity have been looked for.
absl::Status Pushes::ApplyNow(const Table& table, const PreparedTableSettings& settings,
                              ShardStore* store, bool checked, const PushView& push,
                              const Inbound& inbound, bool* begun) {
  const proto::Request& request = inbound.request;
  // Before anything has changed, since there may be no memory for it.
  LogEntry entry = state_->effects->has_follower() ? PushEntry(inbound) : LogEntry();
  ShardCut* const cut = cuts_->current();
  if (cut != nullptr) {
    cut->BeforePush(table, request.clock);
  }
  bool nonfinite = false;
  *begun = request.kind != TableKind::kDense;
  LEEWAY_RETURN_IF_ERROR(checked ? store->Apply(push) : store->Apply(push, &nonfinite));
  *begun = true;
  if (nonfinite) ++state_->context->counters->nonfinite_pushes;
  state_->CountOverflow(store);
  if (cut != nullptr) {
    cut->AfterPush(table, inbound);
  }
  state_->pushed_until = std::max(state_->pushed_until, request.clock + 1);
  ++state_->context->counters->pushes_applied;
  entry.header.table_settings = settings.number;
  state_->AppendToLog(std::move(entry));
  return absl::OkStatus();
}

}  // namespace leeway::ps
