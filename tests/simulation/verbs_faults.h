// What goes wrong with the devices of a cluster over rdma, as the seed has it: single requests, and
// devices that are lost and come back.
#ifndef LEEWAY_TESTS_SIMULATION_VERBS_FAULTS_H_
#define LEEWAY_TESTS_SIMULATION_VERBS_FAULTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "runtime/base/random.h"
#include "tests/simulation/checker.h"
#include "tests/simulation/sim_cluster.h"

namespace leeway::simulation {

class VerbsFaults {
 public:
  // Requests fail from here on.
  VerbsFaults(SimCluster* cluster, std::uint64_t seed);

  // Devices are lost now and then within `window`, and each comes back within 500 ms.
  void Start(absl::Duration window);
  // Whether all devices are back that are to be lost.
  bool over() const { return to_come_ == 0; }
  // Nothing fails any more; everything still takes its time.
  void Stop();

 private:
  void LoseOne(absl::Duration length);

  SimCluster* const cluster_;
  const std::uint64_t seed_;
  runtime::Random random_;  // of lost devices
  int to_come_ = 0;
};

// What must hold of the devices when all processes have gone, whatever failed: nothing is left
// registered, connected or posted, and nothing was changed or deregistered while a device read it.
std::optional<Violation> JudgeDevices(const van::verbs::FakeCounters& counters);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_VERBS_FAULTS_H_
