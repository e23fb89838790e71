// The run-time bound of dynamic stale synchronous parallel (DSSP: Zhao et al., "Dynamic Stale
// Synchronous Parallel Distributed Training for Deep Learning", ICDCS 2019), of one table in one
// shard.
//
// Workers may be `low` clocks ahead of the slowest one. When the fastest would wait there, its next
// iterations and those of the slowest are foretold from how long their last ones took (algorithm
// 2), and it goes on for as many, up to the bound `high`, as make its wait the shortest. Lives on
// the data thread's loop. What it knows is of speeds alone: a new head begins with `low`.
#ifndef LEEWAY_PS_CONSISTENCY_DYNAMIC_BOUND_H_
#define LEEWAY_PS_CONSISTENCY_DYNAMIC_BOUND_H_

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "ps/consistency/worker_clocks.h"

namespace leeway::ps {

class DynamicBound {
 public:
  // The worker has ended its iterations below `clock`, and not more before.
  void Ticked(std::uint32_t rank, std::uint64_t clock, absl::Time now);
  // How many clocks ahead of the slowest worker a pull of that worker in `clock` may be: `low`, or
  // `high`, which it never exceeds.
  std::uint64_t BoundFor(std::uint32_t rank, std::uint64_t clock, std::uint64_t low,
                         std::uint64_t high, const WorkerClocks& clocks, absl::Time now);

  // The iterations that a worker which has just ended one goes on for before it waits: from 0 to
  // `most`, the number with the shortest wait. `fast`, `slow`: how long each takes for one;
  // `since_slow`: since the slowest ended its last.
  static std::uint64_t Extra(absl::Duration fast, absl::Duration slow, absl::Duration since_slow,
                             std::uint64_t most);

 private:
  struct Speed {
    std::uint64_t clock = 0;
    absl::Time ticked = absl::InfinitePast();
    absl::Duration iteration = absl::InfiniteDuration();  // the last one's; not known at first
  };
  struct Grant {
    std::uint64_t decided_at = 0;  // the clock
    std::uint64_t until = 0;       // pulls up to that clock are let through
  };

  std::map<std::uint32_t, Speed> speeds_;  // by rank
  std::map<std::uint32_t, Grant> grants_;  // likewise
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONSISTENCY_DYNAMIC_BOUND_H_
