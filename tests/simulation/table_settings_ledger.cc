#include "tests/simulation/table_settings_ledger.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/messages/table_settings_schedule.h"

namespace leeway::simulation {
namespace {

std::string Describe(const proto::TableSettings& settings) {
  return absl::StrCat("change ", settings.number, " of table ", settings.table, " at clock ",
                      settings.since);
}

}  // namespace

std::string TableSettingsLedger::OnMap(const proto::ClusterMap& map) {
  if (map.version < version_) return "";
  version_ = map.version;
  for (const auto& [id, table] : tables_) {
    if (table.decided.empty()) continue;
    const auto told = proto::TableSettingsOf(map.table_settings, id);
    const auto has_it = [newest = table.decided.rbegin()->first](const proto::TableSettings& one) {
      return one.decided && one.number >= newest;
    };
    if (std::any_of(told.begin(), told.end(), has_it)) continue;
    return absl::StrCat(Describe(table.decided.rbegin()->second), ", is not in the map of version ",
                        map.version);
  }
  for (const proto::TableSettings& settings : map.table_settings) {
    if (!settings.decided) continue;
    Table& table = tables_[settings.table];
    std::string wrong = OnDecision(&table, settings);
    for (const auto& [pusher, clock] : table.newest) {
      if (wrong.empty()) wrong = Judge(table, pusher, clock);
    }
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string TableSettingsLedger::OnDecision(Table* table, const proto::TableSettings& settings) {
  const auto [known, fresh] = table->decided.try_emplace(settings.number, settings);
  if (!fresh) {
    if (known->second == settings) return "";
    return absl::StrCat(Describe(settings), ", is decided anew: it was ", Describe(known->second));
  }
  if (known == table->decided.begin() || std::prev(known)->second.since < settings.since) return "";
  return absl::StrCat(Describe(settings), ", does not follow on ",
                      Describe(std::prev(known)->second));
}

std::string TableSettingsLedger::OnEntry(const proto::Replicate& entry) {
  if (entry.kind != proto::LogEntryKind::kPush) return "";
  Table& table = tables_[entry.table];
  const Pusher pusher{
      .settings = entry.table_settings, .rank = entry.worker, .known_as = entry.incarnation};
  std::uint64_t& newest = table.newest[pusher];
  newest = std::max(newest, entry.clock);
  return Judge(table, pusher, entry.clock);
}

std::string TableSettingsLedger::Judge(const Table& table, const Pusher& pusher,
                                       std::uint64_t clock) const {
  const WorkerLife& life = history_->lives[pusher.rank];
  if (life.WasKilled(life.Incarnation(pusher.known_as))) return "";
  std::uint32_t holds = 0;
  for (const auto& [number, settings] : table.decided) {
    if (settings.since <= clock) holds = number;
  }
  if (pusher.settings == holds) return "";
  return absl::StrCat("a push of worker ", pusher.rank, " in clock ", clock,
                      " is applied with settings ", pusher.settings, ", where settings ", holds,
                      " hold");
}

}  // namespace leeway::simulation
