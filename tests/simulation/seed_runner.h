// RunSeeds runs many seeds on several threads: each run is single-threaded, and the same on any of
// them.
#ifndef LEEWAY_TESTS_SIMULATION_SEED_RUNNER_H_
#define LEEWAY_TESTS_SIMULATION_SEED_RUNNER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/simulation.h"

namespace leeway::simulation {

struct Campaign {
  std::uint64_t start = 1, seeds = 1;
  unsigned jobs = 1;
  SeedOptions options;  // of each seed
  // Called for each seed as it ends, one at a time.
  std::function<void(const SeedResult&)> on_result;
};
void RunSeeds(const Campaign& campaign);
// The first of the seeds that fails; nullopt: none does. `on_result` is not called.
std::optional<SeedResult> FirstFailure(const Campaign& campaign);

// The report of a failure: the seed, the broken promise, the setting, the end of its trace.
std::string DescribeFailure(const SeedResult& result);
// "drop 103, duplicate 41, …": for each kind, how often it struck in the median seed; and the
// number of kinds in the median seed.
std::string DescribeFaults(const std::vector<FaultCounts>& seeds);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SEED_RUNNER_H_
