// A FaultPlan is the list of a run's faults and their times: it depends on the seed alone.
#ifndef LEEWAY_TESTS_SIMULATION_FAULT_PLAN_H_
#define LEEWAY_TESTS_SIMULATION_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/base/random.h"
#include "tests/simulation/fault_kinds.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

struct Episode {
  FaultKind kind = FaultKind::kDrop;
  absl::Duration start, length;
  // Link faults and partitions: the hosts; empty: every host.
  std::string from, to;
  van::LinkFaults link;
  std::string host;   // kills, clocks
  double amount = 0;  // of a clock's rate, the probability that a write fails, or a choice
  // Priorities: the seed of the delays of links.
  std::uint64_t choice = 0;
};

struct FaultPlan {
  std::vector<Episode> episodes;  // by start
  absl::Duration over;            // the end of the last one
  bool Has(FaultKind kind) const;
  std::string ToString() const;  // a line each
};

// Short durations are as likely as ones that are ten times as long.
absl::Duration LogUniform(absl::Duration low, absl::Duration high, runtime::Random* random);

// `spare_servers`: hosts that may be added.
FaultPlan MakeFaultPlan(const Config& config, std::uint32_t spare_servers, FaultSet kinds,
                        absl::Duration window, runtime::Random* random);

// Adds a few changes of that kind, some of them soon after another. `random`: a generator of their
// own, so that everything else stays as it is without them.
void AddChanges(FaultKind kind, absl::Duration window, runtime::Random* random, FaultPlan* plan);

// In every third seed the scheduler moves, up to three times. `random`: a generator of its own.
void AddSchedulerMoves(absl::Duration window, runtime::Random* random, FaultPlan* plan);

// In every third seed workers leave in mid-run and come back as other processes. The
// scheduler hears half of them late then, so that more happens before it answers; not unless
// `kinds` has delays.
void AddLeavings(const Config& config, FaultSet kinds, absl::Duration window,
                 runtime::Random* random, FaultPlan* plan);

// Half the time a worker is killed in the first quarter of the window and comes back late, as
// another process. `random`: a generator of its own.
void AddLateWorker(const Config& config, absl::Duration window, runtime::Random* random,
                   FaultPlan* plan);

// Pairs of strikes of any two of these kinds, close together: events meet that are rare each by
// itself. Where the first kills a worker the second comes about when that death is told. `random`:
// a generator of its own.
void AddPairs(const Config& config, std::uint32_t spare_servers, FaultSet kinds,
              absl::Duration window, runtime::Random* random, FaultPlan* plan);

// Schedules by priority, after PCT (Burckhardt et al., ASPLOS 2010): in every other seed each link
// has its own delay, which differ by several orders of magnitude, and a few times all are drawn
// anew. Events of two nodes then keep one order for long, which random delays of each message
// hardly ever bring about. `random`: a generator of its own.
void AddPriorities(absl::Duration window, runtime::Random* random, FaultPlan* plan);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_FAULT_PLAN_H_
