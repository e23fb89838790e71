#include "ps/data/stragglers.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"

namespace leeway::ps {
namespace {

constexpr std::size_t kWorkersShown = 3;

}  // namespace

std::vector<Straggler> FindStragglers(const std::vector<const Replica*>& replicas) {
  std::map<std::uint32_t, std::pair<Straggler, const Shard*>> by_table;
  for (const Replica* replica : replicas) {
    const Shard& shard = replica->shard();
    shard.ForEachPendingPull([&](const PendingPull& pull) {
      auto& [straggler, oldest_in] = by_table[pull.inbound.request.table];
      ++straggler.pulls;
      if (pull.since >= straggler.since) return;
      straggler.since = pull.since;
      straggler.clock = pull.decision.needed;
      oldest_in = &shard;
    });
  }
  std::vector<Straggler> stragglers;
  for (auto& [table, found] : by_table) {
    found.first.table = table;
    found.first.behind = found.second->clocks().Behind(found.first.clock);
    found.first.why = found.second->WhyOpen(table);
    stragglers.push_back(std::move(found.first));
  }
  return stragglers;
}

std::string Describe(const Straggler& straggler, const std::string& table, absl::Time now) {
  std::string text =
      absl::StrCat(straggler.pulls, straggler.pulls == 1 ? " pull" : " pulls", " of table ", table,
                   straggler.pulls == 1 ? " has" : " have", " waited for clock ", straggler.clock,
                   " for ", runtime::FormatDuration(now - straggler.since));
  if (!straggler.why.empty()) return absl::StrCat(text, ": ", straggler.why);
  for (std::size_t i = 0; i < straggler.behind.size() && i < kWorkersShown; ++i) {
    absl::StrAppend(&text, i == 0 ? ": worker " : ", worker ", straggler.behind[i].rank,
                    " is at clock ", straggler.behind[i].clock);
  }
  if (straggler.behind.size() > kWorkersShown) {
    absl::StrAppend(&text, " and ", straggler.behind.size() - kWorkersShown, " more");
  }
  return text;
}

}  // namespace leeway::ps
