#include "ps/consistency/dynamic_bound.h"

#include <algorithm>
#include <vector>

namespace leeway::ps {
namespace {

// The most iterations that are foretold: a bound beyond it is as good as none.
constexpr std::uint64_t kForetoldMax = 1000;

}  // namespace

void DynamicBound::Ticked(std::uint32_t rank, std::uint64_t clock, absl::Time now) {
  Speed& speed = speeds_[rank];
  if (clock > speed.clock && speed.ticked != absl::InfinitePast()) {
    speed.iteration = (now - speed.ticked) / static_cast<double>(clock - speed.clock);
  }
  speed.clock = clock;
  speed.ticked = now;
}

std::uint64_t DynamicBound::BoundFor(std::uint32_t rank, std::uint64_t clock, std::uint64_t low,
                                     std::uint64_t high, const WorkerClocks& clocks,
                                     absl::Time now) {
  const std::uint64_t slowest = clocks.slowest();
  const std::uint64_t lead = clock > slowest ? clock - slowest : 0;
  if (lead <= low || lead > high || clocks.ClockOf(rank) < clocks.fastest()) return low;
  Grant& grant = grants_[rank];
  if (clock <= grant.until) return high;
  if (grant.decided_at == clock) return low;
  grant.decided_at = clock;
  const std::vector<WorkerClocks::WorkerClock> behind = clocks.Behind(slowest + 1);
  if (behind.empty()) return low;
  const Speed& fast = speeds_[rank];
  const Speed& slow = speeds_[behind.front().rank];
  if (std::max(fast.iteration, slow.iteration) == absl::InfiniteDuration()) return low;
  const std::uint64_t extra =
      Extra(fast.iteration, slow.iteration, now - slow.ticked, high - lead + 1);
  if (extra == 0) return low;
  grant.until = clock + extra - 1;
  return high;
}

std::uint64_t DynamicBound::Extra(absl::Duration fast, absl::Duration slow,
                                  absl::Duration since_slow, std::uint64_t most) {
  if (slow <= absl::ZeroDuration()) return 0;
  std::uint64_t best = 0;
  absl::Duration least = absl::InfiniteDuration();
  for (std::uint64_t extra = 0; extra <= std::min(most, kForetoldMax); ++extra) {
    // From the slowest one's last tick to the end of the fast one's iteration.
    const absl::Duration end = since_slow + static_cast<double>(extra) * fast;
    absl::Duration rest;
    absl::IDivDuration(end, slow, &rest);
    const absl::Duration wait = rest == absl::ZeroDuration() && end > absl::ZeroDuration()
                                    ? absl::ZeroDuration()
                                    : slow - rest;
    if (wait < least) {
      least = wait;
      best = extra;
    }
  }
  return best;
}

}  // namespace leeway::ps
