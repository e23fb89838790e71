// RunReal runs a plan on a cluster of processes of this machine, in wall time.
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_REAL_ENGINE_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_REAL_ENGINE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/run_plan.h"
#include "benchmarks/lab/results/run_result.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

// The processes are this program again: `scheduler`, `server` and `node FOLDER`, which calls
// RunNode. Returns when all have ended; the error names the process that failed.
absl::StatusOr<RunResult> RunReal(const RunPlan& plan, const Workload& workload);

// One worker, or the evaluator (LEEWAY_READ_ONLY), of the run in that folder.
absl::Status RunNode(const std::string& folder);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_REAL_ENGINE_H_
