#include "worker/client/log_name.h"

#include <mutex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/log/log.h"

namespace leeway::worker {
namespace {

struct Ranks {
  std::mutex mutex;
  std::multiset<std::uint32_t> all;  // two clusters may have workers of one rank here
  std::string shown;                 // the name that was set last
};

// Never destroyed: workers may be destroyed as late as at the exit of the process.
Ranks& TheRanks() {
  static Ranks* const ranks = new Ranks;
  return *ranks;
}

// Under the mutex.
void Show(Ranks& ranks) {
  if (runtime::LogName() != ranks.shown) return;  // the process has another name
  ranks.shown = ranks.all.empty() ? ""
                                  : absl::StrCat(ranks.all.size() == 1 ? "worker " : "workers ",
                                                 absl::StrJoin(ranks.all, ", "));
  runtime::SetLogName(ranks.shown);
}

}  // namespace

void LogName::SetRank(std::uint32_t rank) {
  Clear();
  Ranks& ranks = TheRanks();
  const std::lock_guard lock(ranks.mutex);
  rank_ = rank;
  ranks.all.insert(rank);
  Show(ranks);
}

void LogName::Clear() {
  if (!rank_.has_value()) return;
  Ranks& ranks = TheRanks();
  const std::lock_guard lock(ranks.mutex);
  ranks.all.erase(ranks.all.find(*rank_));
  rank_.reset();
  Show(ranks);
}

}  // namespace leeway::worker
