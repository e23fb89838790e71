// The stragglers of one data thread: the workers that its pending pulls wait for.
#ifndef LEEWAY_PS_DATA_STRAGGLERS_H_
#define LEEWAY_PS_DATA_STRAGGLERS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "ps/consistency/worker_clocks.h"
#include "ps/replication/replica.h"

namespace leeway::ps {

// Pulls that have waited so long are logged.
inline constexpr absl::Duration kStragglerLoggedAfter = absl::Seconds(5);
// Not before so long after the last time, by all data threads of a server together.
inline constexpr absl::Duration kStragglerLogInterval = absl::Minutes(1);

// Of one table.
struct Straggler {
  std::uint32_t table = 0;
  std::uint64_t pulls = 0;  // that wait
  // Of the one that has waited longest: since when, for which clock, and for whom (slowest first),
  // or why else (Policy::WhyOpen).
  absl::Time since = absl::InfiniteFuture();
  std::uint64_t clock = 0;
  std::vector<WorkerClocks::WorkerClock> behind;
  std::string why;
};

// By table. Takes time in proportion to the pulls that wait.
std::vector<Straggler> FindStragglers(const std::vector<const Replica*>& replicas);

// "12 pulls of table w have waited for clock 43 for 34.5s: worker 2 is at clock 41".
std::string Describe(const Straggler& straggler, const std::string& table, absl::Time now);

// The time at which the next log line about stragglers is due. Shared by the data threads of a
// server: any thread.
class StragglerLines {
 public:
  bool Take(absl::Time now) {
    const std::lock_guard lock(mutex_);
    if (now < next_) return false;
    next_ = now + kStragglerLogInterval;
    return true;
  }

 private:
  std::mutex mutex_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STRAGGLERS_H_
