#include "ps/shard/log_follower.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ps/shard/state/log_entry_conversion.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

// Whether the table of an entry, and the settings it names, are here.
absl::Status CheckKnown(const LogEntry& entry, ShardState* state) {
  const Table* const table = state->context->tables.Find(entry.header.table);
  if (table != nullptr && table->FindSettings(entry.header.table_settings) != nullptr) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      table == nullptr
          ? absl::StrCat("table ", entry.header.table, " is not installed on this server")
          : absl::StrCat("this server has not heard of table settings ",
                         entry.header.table_settings, " of table ", entry.header.table));
}

// Of a table whose clocks a count of workers closes: clocks below `clock` have closed.
void NoteOpen(const Table& table, std::uint64_t clock, ShardState* state) {
  if (!table.closes_by_count()) return;
  std::uint64_t& closed = state->ClosedOf(table);
  closed = std::max(closed, clock);
}

// What was applied at once is of that worker. Returns its session; null: it has been replaced.
ClientSession* NoteAdmitted(const proto::Replicate& header, ShardState* state) {
  state->pushed_until = std::max(state->pushed_until, header.clock + 1);
  state->sessions.NoteTold(header.map_version);
  ClientSession* const session =
      state->sessions.OfTold({header.worker, header.incarnation}, header.map_version);
  if (session == nullptr) return nullptr;
  RequestOrder& order = session->orders[kAtOnce];
  order.Admit(std::max(order.admitted(), header.sequence));
  return session;
}

absl::Status FollowPush(const LogEntry& entry, ShardState* state) {
  const proto::Replicate& header = entry.header;
  LEEWAY_RETURN_IF_ERROR(CheckKnown(entry, state));
  Table& table = *state->context->tables.Find(header.table);
  table.NoteAskedFor();
  if (header.collected) {
    LEEWAY_ASSIGN_OR_RETURN(
        const AggregatedPush weighted,
        Weighted(*state->stores.Of(table), table.spec().dtype, ToPush(entry), header.weight));
    LEEWAY_RETURN_IF_ERROR(state->stores.CollectedOf(table).Add(weighted));
    NoteOpen(table, header.clock, state);
    state->closing.erase(table.id());
  } else {
    LEEWAY_RETURN_IF_ERROR(state->stores.Apply(table, *table.FindSettings(header.table_settings),
                                               ToPush(entry), header.weight,
                                               /*nonfinite=*/nullptr));
  }
  ++state->context->counters->pushes_followed;
  NoteAdmitted(header, state);
  return absl::OkStatus();
}

absl::Status FollowCall(const std::vector<LogEntry>& effects, const LogEntry& entry,
                        ShardState* state) {
  const proto::Replicate& header = entry.header;
  for (const LogEntry& effect : effects) {
    Table& table = *state->context->tables.Find(effect.header.table);
    table.NoteAskedFor();
    LEEWAY_RETURN_IF_ERROR(
        state->stores.Apply(table, *table.FindSettings(effect.header.table_settings),
                            ToPush(effect), /*weight=*/1, /*nonfinite=*/nullptr));
  }
  ClientSession* const session = NoteAdmitted(header, state);
  if (session == nullptr) return absl::OkStatus();
  session->answers.ForgetBelow(header.settled);
  session->answers.Keep(header.sequence, entry.payload[0]);
  return absl::OkStatus();
}

absl::Status FollowClose(const std::vector<LogEntry>& updates, const LogEntry& entry,
                         ShardState* state) {
  const proto::Replicate& header = entry.header;
  for (const LogEntry& update : updates) {
    Table& table = *state->context->tables.Find(update.header.table);
    table.NoteAskedFor();
    const AggregatedPush aggregate = ToAggregate(update);
    ShardStore* const store =
        state->stores.Of(table, *table.FindSettings(update.header.table_settings));
    LEEWAY_RETURN_IF_ERROR(store->ApplyAggregate(aggregate));
    LEEWAY_RETURN_IF_ERROR(store->MakeVersion(aggregate.block, header.clock + 1,
                                              aggregate.learning_rate, ToVersionBy(update)));
  }
  state->closed = std::max(state->closed, header.clock + 1);
  state->sessions.Take(header.workers, header.map_version);
  return absl::OkStatus();
}

absl::Status FollowCollected(const LogEntry& entry, ShardState* state) {
  const proto::Replicate& header = entry.header;
  LEEWAY_RETURN_IF_ERROR(CheckKnown(entry, state));
  const Table& table = *state->context->tables.Find(header.table);
  if (header.mean_of == 0) {  // clocks have closed
    NoteOpen(table, header.clock + 1, state);
    if (table.closes_by_count()) state->closing.insert(table.id());
    return absl::OkStatus();
  }
  if (state->stores.CollectedOf(table).count(header.block) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("nothing is collected for block ", header.block, " of table ", header.table));
  }
  return state->stores.ApplyCollected(table, *table.FindSettings(header.table_settings),
                                      header.block, header.mean_of);
}

absl::Status FollowVersion(const LogEntry& entry, ShardState* state) {
  LEEWAY_RETURN_IF_ERROR(CheckKnown(entry, state));
  // The log does not say how far the slowest worker is: a head that takes over finds out anew.
  return state->stores.Of(*state->context->tables.Find(entry.header.table))
      ->MakeVersion(entry.header.block, 0, std::numeric_limits<double>::quiet_NaN(),
                    ToVersionBy(entry));
}

absl::Status FollowPublish(const LogEntry& entry, ShardState* state) {
  LEEWAY_RETURN_IF_ERROR(CheckKnown(entry, state));
  state->published.Freeze(*state->context->tables.Find(entry.header.table), &state->stores,
                          entry.header.version);
  return absl::OkStatus();
}

}  // namespace

absl::Status FollowLog(const std::vector<LogEntry>& updates, const LogEntry& entry,
                       ShardState* state) {
  const proto::Replicate& header = entry.header;
  // All that could be missing is looked for before anything is changed.
  for (const LogEntry& update : updates) LEEWAY_RETURN_IF_ERROR(CheckKnown(update, state));
  switch (header.kind) {
    case proto::LogEntryKind::kPush:
      LEEWAY_RETURN_IF_ERROR(FollowPush(entry, state));
      break;
    case proto::LogEntryKind::kClose:
      LEEWAY_RETURN_IF_ERROR(FollowClose(updates, entry, state));
      break;
    case proto::LogEntryKind::kCall:
      LEEWAY_RETURN_IF_ERROR(FollowCall(updates, entry, state));
      break;
    case proto::LogEntryKind::kCollected:
      LEEWAY_RETURN_IF_ERROR(FollowCollected(entry, state));
      break;
    case proto::LogEntryKind::kEnter:
      state->sessions.Take(header.workers, header.map_version);
      break;
    case proto::LogEntryKind::kVersion:
      LEEWAY_RETURN_IF_ERROR(FollowVersion(entry, state));
      break;
    case proto::LogEntryKind::kRefusal:
      state->sessions.TakeRefusals(header.refusals, header.map_version);
      break;
    case proto::LogEntryKind::kPublish:
      LEEWAY_RETURN_IF_ERROR(FollowPublish(entry, state));
      break;
    case proto::LogEntryKind::kConfirm:
      break;
    default:
      return absl::InvalidArgumentError("this is no entry of a shard's log");
  }
  ++state->index;
  return absl::OkStatus();
}

}  // namespace leeway::ps
