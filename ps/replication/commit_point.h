// The commit point of one replica's log: up to which index the entries are on every replica, the
// entries after it, and which clocks are therefore stable.
//
// While no replica has to follow, everything is committed at once. Once one has to (gating), the
// commit point is what the successor has acknowledged.
#ifndef LEEWAY_PS_REPLICATION_COMMIT_POINT_H_
#define LEEWAY_PS_REPLICATION_COMMIT_POINT_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "ps/replication/log/uncommitted.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

class CommitPoint {
 public:
  // `log`: the budget of entries that are not on every replica yet.
  explicit CommitPoint(runtime::ByteBudget* log) : uncommitted_(log) {}

  bool gating() const { return gating_; }
  // `index`: of the last entry of the log.
  std::uint64_t committed(std::uint64_t index) const { return gating_ ? committed_ : index; }
  // Nothing is committed from now on that the successor does not have; or everything is.
  void SetGating(bool gating, std::uint64_t index) {
    if (gating && !gating_) committed_ = index;
    gating_ = gating;
  }
  // The successor has everything up to `committed`. True if that is news.
  bool Advance(std::uint64_t committed) {
    if (!gating_ || committed <= committed_) {
      return false;
    }
    committed_ = committed;
    return true;
  }

  // Keeps an entry for a later successor, while gating.
  void Append(const LogEntry& entry) {
    if (gating_) uncommitted_.Append(entry);
  }
  // Forgets entries up to the commit point.
  void Trim(std::uint64_t index) { uncommitted_.Trim(committed(index)); }
  const std::deque<LogEntry>& uncommitted() const { return uncommitted_.entries(); }

  // ---- stable clocks, at the head ----

  // All clocks below it have closed, and the other replicas know.
  std::uint64_t stable() const { return stable_; }
  // `closed`: all clocks below it have closed, by entries up to `index`. True if stable() has
  // grown.
  bool UpdateStable(std::uint64_t index, std::uint64_t closed);
  // A new head begins to lead.
  void RestartStable() {
    stable_ = 0;
    closings_.clear();
  }
  void ForgetClosings() { closings_.clear(); }

 private:
  bool gating_ = false;
  std::uint64_t committed_ = 0;  // while gating
  Uncommitted uncommitted_;
  std::uint64_t stable_ = 0;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> closings_;  // index, closed
};

inline bool CommitPoint::UpdateStable(std::uint64_t index, std::uint64_t closed) {
  const std::uint64_t before = stable_;
  if (committed(index) == index) {
    closings_.clear();
    stable_ = std::max(stable_, closed);
  } else {
    for (; !closings_.empty() && closings_.front().first <= committed(index);
         closings_.pop_front()) {
      stable_ = closings_.front().second;
    }
    if (closed > (closings_.empty() ? stable_ : closings_.back().second)) {
      closings_.emplace_back(index, closed);
    }
  }
  return stable_ > before;
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_COMMIT_POINT_H_
