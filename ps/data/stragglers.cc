#include "ps/data/stragglers.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::ps {
namespace {

constexpr std::size_t kWorkersShown = 3;

}  // namespace

std::vector<HoldUp> FindHoldUps(const std::vector<const Replica*>& replicas) {
  std::map<std::uint32_t, std::pair<HoldUp, const Shard*>> by_table;
  for (const Replica* replica : replicas) {
    const Shard& shard = replica->shard();
    shard.held().ForEach([&](const HeldPull& pull) {
      auto& [hold_up, oldest_in] = by_table[pull.inbound.request.table];
      ++hold_up.pulls;
      if (pull.since >= hold_up.since) return;
      hold_up.since = pull.since;
      hold_up.clock = pull.needed;
      oldest_in = &shard;
    });
  }
  std::vector<HoldUp> hold_ups;
  for (auto& [table, found] : by_table) {
    found.first.table = table;
    found.first.behind = found.second->progress().Behind(found.first.clock);
    hold_ups.push_back(std::move(found.first));
  }
  return hold_ups;
}

std::string Describe(const HoldUp& hold_up, const std::string& table, absl::Time now) {
  std::string text = absl::StrCat(
      hold_up.pulls, hold_up.pulls == 1 ? " pull" : " pulls", " of table ", table,
      hold_up.pulls == 1 ? " has" : " have", " waited for clock ", hold_up.clock, " for ",
      absl::FormatDuration(absl::Floor(now - hold_up.since, absl::Milliseconds(100))));
  for (std::size_t i = 0; i < hold_up.behind.size() && i < kWorkersShown; ++i) {
    absl::StrAppend(&text, i == 0 ? ": worker " : ", worker ", hold_up.behind[i].rank,
                    " is at clock ", hold_up.behind[i].clock);
  }
  if (hold_up.behind.size() > kWorkersShown) {
    absl::StrAppend(&text, " and ", hold_up.behind.size() - kWorkersShown, " more");
  }
  return text;
}

}  // namespace leeway::ps
