// VerbsFaults are the faults of a cluster's rdma devices, by the seed: single requests fail, and
// devices are lost and come back.
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
  // True if all planned losses are over and all devices are back.
  bool over() const { return to_come_ == 0; }
  // Nothing fails from now on; everything still takes its time.
  void Stop();

 private:
  void LoseOne(absl::Duration length);

  SimCluster* const cluster_;
  const std::uint64_t seed_;
  runtime::Random random_;  // for lost devices
  int to_come_ = 0;
};

// Checks the devices when all processes have ended, after any faults: no memory is registered, no
// connection open and no request posted, and no memory was changed or deregistered while a device
// read it.
std::optional<Violation> JudgeDevices(const van::verbs::FakeCounters& counters);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_VERBS_FAULTS_H_
