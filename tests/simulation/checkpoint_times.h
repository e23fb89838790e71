// CheckpointTimes knows when the servers of a simulated run had written a checkpoint: nothing that
// they hear later is in it.
#ifndef LEEWAY_TESTS_SIMULATION_CHECKPOINT_TIMES_H_
#define LEEWAY_TESTS_SIMULATION_CHECKPOINT_TIMES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "checkpoint/manifest.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

class CheckpointTimes {
 public:
  // A message leaves a host (SimNetwork::Tap).
  void Hear(const van::Overheard& heard, absl::Time now);
  // When the last server said for the first time that its part is written.
  absl::Time WrittenAt(const checkpoint::Manifest& manifest) const;

 private:
  struct Attempt {
    std::string directory;
    std::uint64_t clock = 0;
    std::set<std::string> servers = {};  // that have written their part
    absl::Time written = absl::InfinitePast();
  };
  std::map<std::uint64_t, Attempt> attempts_;  // by CheckpointCut::checkpoint
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CHECKPOINT_TIMES_H_
