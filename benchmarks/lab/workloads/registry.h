// The workloads that runs may name.
#ifndef LEEWAY_BENCHMARKS_LAB_WORKLOADS_REGISTRY_H_
#define LEEWAY_BENCHMARKS_LAB_WORKLOADS_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/run_plan.h"
#include "benchmarks/lab/workloads/workload.h"

namespace leeway::lab {

using WorkloadMaker = std::function<absl::StatusOr<std::unique_ptr<Workload>>(std::uint64_t seed)>;

// Adds a workload of the program's own. ALREADY_EXISTS: the name is taken.
absl::Status AddWorkload(std::string name, WorkloadMaker maker);

std::vector<std::string> WorkloadNames();

// NOT_FOUND names the workloads that there are, or the package with the data.
absl::StatusOr<std::unique_ptr<Workload>> NewWorkload(const std::string& name, std::uint64_t seed);

// INVALID_ARGUMENT: what the plan says does not suit the workload's tables or samples.
absl::Status CheckPlan(const RunPlan& plan, const Workload& workload);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_WORKLOADS_REGISTRY_H_
