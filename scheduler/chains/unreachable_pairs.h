// The pairs of servers that cannot reach each other although both reach the scheduler, as one of
// them has reported. No report says that they can again: a pair is forgotten after a while and then
// tried, and if it is reported again soon, it is kept for twice as long. At most kApartPairsMax.
#ifndef LEEWAY_SCHEDULER_CHAINS_UNREACHABLE_PAIRS_H_
#define LEEWAY_SCHEDULER_CHAINS_UNREACHABLE_PAIRS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"

namespace leeway::scheduler {

// Pairs that are kept at once; of more, those are dropped that would be forgotten first.
inline constexpr std::size_t kApartPairsMax = 1024;

class ApartPairs {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // ranks, the smaller one first

  // A pair is kept for `first`, then for up to `longest`.
  ApartPairs(absl::Duration first, absl::Duration longest) : first_(first), longest_(longest) {}

  static Pair Of(std::uint32_t one, std::uint32_t other) { return std::minmax(one, other); }

  // The two have been reported to be apart. Returns for how long that is kept; zero if it is kept
  // already.
  absl::Duration Note(std::uint32_t one, std::uint32_t other, absl::Time now);
  // The server has gone.
  void Forget(std::uint32_t rank);
  // True if a pair is not apart any more.
  bool Expire(absl::Time now);

  const std::set<Pair>& apart() const { return apart_; }

 private:
  struct Entry {
    absl::Duration span;
    absl::Time until;
  };

  const absl::Duration first_, longest_;
  std::map<Pair, Entry> entries_;  // also of pairs that were apart until lately
  std::set<Pair> apart_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_UNREACHABLE_PAIRS_H_
