#include "tests/mutants/catalogue.h"

namespace leeway::mutants {

std::vector<KnownBug> Catalogue() {
  std::vector<KnownBug> all;
  for (const std::span<const KnownBug> bugs :
       {ReplicaBugs(), ShardBugs(), ShardStateBugs(), ServerBugs(), VanBugs(), SchedulerBugs(),
        PlanningBugs(), CheckpointBugs(), WorkerBugs()}) {
    all.insert(all.end(), bugs.begin(), bugs.end());
  }
  return all;
}

}  // namespace leeway::mutants
