#include "scheduler/tables/table_changes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/messages/limits.h"
#include "proto/messages/table_settings_schedule.h"
#include "proto/tables/table_difference.h"
#include "runtime/base/format_duration.h"

namespace leeway::scheduler {
namespace {

// While workers use a table its bound on staleness alone may change, and not whether pushes are
// held.
absl::Status CheckInUse(const TableSpec& is, const TableSpec& wanted) {
  Consistency bounded = is.consistency;
  bounded.staleness = wanted.consistency.staleness;
  if (bounded == wanted.consistency && is.consistency.is_bsp() == wanted.consistency.is_bsp()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the consistency of table '", is.name, "' is ", is.consistency.ToString(),
                   ", and cannot become ", wanted.consistency.ToString(),
                   " while it is used: only the bound on staleness changes then (ssp:S, asp, the "
                   "bound of dssp or psp). A table of a checkpoint (LEEWAY_RESTORE) gets any other "
                   "consistency from the first worker that creates it"));
}

}  // namespace

TableChanges::TableChanges(const MembershipTable* members, absl::Duration resend_interval,
                           absl::Duration timeout, Send send, CodecSwitches::Changed changed)
    : members_(members),
      resend_interval_(resend_interval),
      timeout_(timeout),
      send_(std::move(send)),
      changed_(changed),
      switches_(
          proto::kTableSettingsToldMax, [members] { return members->AliveIds(Role::kWorker); },
          std::move(changed)) {}

void TableChanges::Change(const TableCatalogue::Entry& table, const TableSpec& wanted,
                          std::uint32_t trial, std::optional<std::uint64_t> from, absl::Time now,
                          Done done) {
  const TableSpec is = SpecOf(table);
  if (AskedForAgain(table, wanted, from)) {
    Pending& again = pending_[table.id];
    again.name = is.name;
    again.done = std::move(done);
    again.agreed = true;
    return;
  }
  if (changing(table.id)) {
    return done(absl::AbortedError(
        absl::StrCat("another change of table '", is.name, "' is under way: ask again")));
  }
  if (absl::Status valid = wanted.Validate(); !valid.ok()) return done(valid);
  if (absl::Status alike = proto::CheckShapedAlike(is, wanted); !alike.ok()) return done(alike);
  if (absl::Status may = CheckInUse(is, wanted); !from.has_value() && !may.ok()) return done(may);
  std::vector<proto::TableSettings>& settings = settings_[table.id];
  if (is == wanted) return done(settings.empty() ? 0 : settings.back().since);
  const std::uint32_t number = settings.empty() ? 1 : settings.back().number + 1;
  if (number > proto::kTableSettingsMax) {
    return done(absl::ResourceExhaustedError(
        absl::StrCat("table '", is.name, "' was changed ", proto::kTableSettingsMax, " times")));
  }
  Pending& pending = pending_[table.id];
  pending.name = is.name;
  pending.asked = {.table = trial, .spec = wanted, .of = table.id};
  for (const std::uint32_t server : members_->AliveIds(Role::kServer))
    pending.awaited.insert(server);
  pending.from = from;
  pending.resend_at = now + resend_interval_;
  pending.deadline = now + timeout_;
  pending.done = std::move(done);
  for (const std::uint32_t server : pending.awaited) send_(server, pending.asked);
  AnnounceIfAgreed(table.id);
}

const proto::TableSettings* TableChanges::Announced(std::uint32_t table) const {
  const auto found = settings_.find(table);
  const bool announced =
      found != settings_.end() && !found->second.empty() && !found->second.back().decided;
  return announced ? &found->second.back() : nullptr;
}

// True if the change is under way since before a restart of the scheduler.
bool TableChanges::AskedForAgain(const TableCatalogue::Entry& table, const TableSpec& wanted,
                                 std::optional<std::uint64_t> from) const {
  const proto::TableSettings* const announced = Announced(table.id);
  return announced != nullptr && !from.has_value() && !pending_.contains(table.id) &&
         proto::WithTableSettings(table.spec, *announced) == wanted;
}

bool TableChanges::OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply) {
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const auto& one) {
    return one.second.asked.table == reply.table;
  });
  if (found == pending_.end()) return false;
  const std::uint32_t table = found->first;
  Pending& pending = found->second;
  // A server that has just joined is still installing its tables: it is asked again.
  if (absl::IsUnavailable(reply.result)) return true;
  if (pending.agreed || pending.awaited.erase(server) == 0) return true;
  if (!reply.result.ok()) {
    Fail(table,
         absl::Status(reply.result.code(),
                      absl::StrCat(members_->DescribeServer(server), " refuses to change table '",
                                   pending.name, "': ", reply.result.message())));
    return true;
  }
  pending.accepted = true;
  AnnounceIfAgreed(table);
  return true;
}

void TableChanges::ServersChanged() {
  const std::vector<std::uint32_t> living = members_->AliveIds(Role::kServer);
  std::vector<std::uint32_t> tables;
  for (auto& [table, pending] : pending_) {
    std::erase_if(pending.awaited, [&](std::uint32_t server) {
      return std::find(living.begin(), living.end(), server) == living.end();
    });
    tables.push_back(table);
  }
  for (const std::uint32_t table : tables) AnnounceIfAgreed(table);
}

void TableChanges::AnnounceIfAgreed(std::uint32_t table) {
  const auto found = pending_.find(table);
  if (found == pending_.end() || found->second.agreed || !found->second.awaited.empty()) return;
  Pending& pending = found->second;
  if (!pending.accepted) {
    return Fail(table, absl::UnavailableError(absl::StrCat(
                           "table '", pending.name, "' was not changed: no server is alive that ",
                           "has said whether it can be; ask again")));
  }
  pending.agreed = true;
  const std::vector<proto::TableSettings>& all = settings_[table];
  const std::uint32_t number = all.empty() ? 1 : all.back().number + 1;
  proto::TableSettings next = proto::TableSettingsOf(pending.asked.spec);
  next.table = table;
  next.number = number;
  Add(next);
  ++changes_;
  if (pending.from.has_value()) {
    const std::uint64_t clock = *pending.from;
    switches_.Set(table, number, clock);
    Decided(table, clock);
    return changed_();
  }
  switches_.Switch(table, number, [this, table](const absl::StatusOr<std::uint64_t>& clock) {
    if (clock.ok()) Decided(table, *clock);
  });
}

void TableChanges::Add(const proto::TableSettings& settings) {
  settings_[settings.table].push_back(settings);
  if (settings.consistency.is_bounded()) ever_bounded_.insert(settings.table);
}

void TableChanges::Decided(std::uint32_t table, std::uint64_t clock) {
  std::vector<proto::TableSettings>& all = settings_[table];
  all.back().since = clock;
  all.back().decided = true;
  DropUnneeded();
  ++changes_;
  const auto pending = pending_.extract(table);  // after a restart there is none
  if (!pending.empty()) pending.mapped().done(clock);
}

void TableChanges::DropUnneeded() {
  for (auto& [table, settings] : settings_) {
    const std::uint32_t oldest = switches_.OldestChoice(table);
    std::erase_if(settings, [&](const auto& one) { return one.number < oldest; });
  }
}

void TableChanges::OnAck(std::uint32_t worker, std::uint64_t version, std::uint64_t clock,
                         std::uint64_t oldest) {
  switches_.OnAck(worker, version, clock, oldest);
  DropUnneeded();
}

void TableChanges::Fail(std::uint32_t table, const absl::Status& why) {
  const auto pending = pending_.extract(table);
  pending.mapped().done(why);
}

void TableChanges::Tick(absl::Time now) {
  std::vector<std::uint32_t> late;
  for (auto& [table, pending] : pending_) {
    if (pending.agreed) continue;  // a change that is announced ends by itself
    if (now >= pending.deadline) {
      late.push_back(table);
    } else if (now >= pending.resend_at) {
      pending.resend_at = now + resend_interval_;
      for (const std::uint32_t server : pending.awaited) {
        send_(server, pending.asked);
      }
    }
  }
  for (const std::uint32_t table : late) {
    const Pending& pending = pending_.at(table);
    const std::uint32_t first = *pending.awaited.begin();
    Fail(table, absl::DeadlineExceededError(absl::StrCat(
                    "table '", pending.name, "' was not changed: waited ",
                    runtime::FormatDuration(timeout_), " (LEEWAY_REQUEST_TIMEOUT_MS) for ",
                    members_->DescribeServer(first), ", ", members_->LastHeard(first, now))));
  }
}

TableSpec TableChanges::SpecOf(const TableCatalogue::Entry& table) const {
  const auto found = settings_.find(table.id);
  if (found == settings_.end()) return table.spec;
  for (auto it = found->second.rbegin(); it != found->second.rend(); ++it) {
    if (it->decided) return proto::WithTableSettings(table.spec, *it);
  }
  return table.spec;
}

bool TableChanges::IsEverBounded(const TableCatalogue::Entry& table) const {
  return table.spec.consistency.is_bounded() || ever_bounded_.contains(table.id);
}

std::vector<proto::TableSettings> TableChanges::EntriesOf(std::uint32_t table) const {
  const auto found = settings_.find(table);
  std::vector<proto::TableSettings> all;
  if (found != settings_.end()) all = found->second;
  if (!all.empty() && !all.back().decided) {
    for (const proto::CodecSwitch& change : switches_.entries()) {
      if (change.table == table && !change.decided) all.back().since = change.clock;
    }
  }
  return all;
}

std::vector<proto::TableSettings> TableChanges::entries() const {
  std::vector<proto::TableSettings> all;
  for (const auto& [table, settings] : settings_) {
    for (proto::TableSettings& one : EntriesOf(table)) all.push_back(std::move(one));
  }
  return all;
}

void TableChanges::Restore(const std::vector<proto::TableSettings>& entries,
                           const std::set<std::uint32_t>& ever_bounded) {
  ever_bounded_ = ever_bounded;
  std::vector<proto::CodecSwitch> switches;
  for (const proto::TableSettings& one : entries) {
    Add(one);
    proto::CodecSwitch change{.table = one.table,
                              .number = one.number,
                              .before = one.number - 1,
                              .choice = one.number,
                              .clock = one.since,
                              .decided = one.decided};
    switches.push_back(change);
  }
  switches_.Restore(switches,
                    [this](std::uint32_t table, std::uint64_t clock) { Decided(table, clock); });
}

}  // namespace leeway::scheduler
