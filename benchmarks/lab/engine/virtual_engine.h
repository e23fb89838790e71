// RunVirtual runs a plan in the simulator: the real scheduler, servers and workers with real
// gradients, on virtual time. Computation takes the time that the plan says, messages that of the
// plan's links, and nothing else takes any.
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_VIRTUAL_ENGINE_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_VIRTUAL_ENGINE_H_

#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/run_plan.h"
#include "benchmarks/lab/results/run_result.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

// The same plan gives the same result, to the bit. After an error the threads of the run stay where
// they are: the process is to end.
absl::StatusOr<RunResult> RunVirtual(const RunPlan& plan, const Workload& workload);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_VIRTUAL_ENGINE_H_
