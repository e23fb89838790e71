// RunScale measures how Leeway grows: a cluster of any size on virtual time, over network cards of
// a given bandwidth, from the first Join to the end. Only the user's computation and the network
// take time; the processors' own work takes none, so that two cores can simulate a thousand
// workers.
#ifndef LEEWAY_TESTS_SIMULATION_SCALE_SCALE_RUN_H_
#define LEEWAY_TESTS_SIMULATION_SCALE_SCALE_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/simulation/scale/scale_plan.h"

namespace leeway::simulation {

// The bytes that the scheduler's card received and sent in a phase.
struct SchedulerLoad {
  std::uint64_t messages = 0, bytes = 0;
  absl::Duration time;
};

struct ScaleFigures {
  absl::Duration ideal, step, slowest_step;
  SchedulerLoad joining;  // until all are connected and have the tables
  SchedulerLoad steady;   // in the measured steps
  SchedulerLoad leaving;  // until the cluster has ended
  // Bytes that the fullest server's card received in the steps, divided by those of its gradients.
  double bytes_vs_payload = 0;
  std::uint64_t messages_a_step = 0;  // of all nodes
  // Heap memory of all nodes and the network between them.
  std::uint64_t idle_bytes = 0;  // once all are connected and have the tables
  std::uint64_t peak_bytes = 0;  // while they train
  // Real time.
  double joining_seconds = 0, training_seconds = 0, leaving_seconds = 0;
};

double StepVsIdeal(const ScaleFigures& figures);
double SchedulerMessagesPerNodeSecond(const ScalePlan& plan, const ScaleFigures& figures);

// The same plan gives the same figures, apart from memory and real time.
absl::StatusOr<ScaleFigures> RunScale(const ScalePlan& plan);

// One line of JSON.
std::string ToJson(const ScalePlan& plan, const ScaleFigures& figures);

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SCALE_SCALE_RUN_H_
