// TrainWorker and WatchRun are what a run's workers and its evaluator do, on either engine: they
// see the public interface of a worker, and time through Surroundings.
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_TRAIN_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_TRAIN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/lab/engine/progress.h"
#include "benchmarks/lab/engine/surroundings.h"
#include "benchmarks/lab/experiment/batches.h"
#include "benchmarks/lab/experiment/run_plan.h"
#include "benchmarks/lab/results/run_result.h"
#include "benchmarks/lab/workloads/workload.h"
#include "leeway/worker.h"

namespace leeway::lab {

// What a run's processes have in common. Outlives the calls.
struct RunContext {
  RunPlan plan;
  const Workload* workload = nullptr;
  Progress* progress = nullptr;
};

// A worker's part of the result.
struct WorkerRecord {
  std::vector<TimelineStep> steps;  // all of them
  std::vector<double> losses;       // by step, the mean of its batch
  double end_s = 0;                 // its last push has been applied
  std::map<std::uint64_t, std::uint64_t> clock_staleness;
  std::uint64_t dropped = 0, violations = 0;
};
absl::StatusOr<WorkerRecord> TrainWorker(const RunContext& context, Surroundings* time,
                                         Worker* worker);

// The model at times, and at the end. `reader` is a worker that only pulls. Values are evaluated
// after training, so that this takes none of its time. The caller sets Progress::evaluated.
struct Snapshot {
  Point at;  // without loss and score
  std::vector<std::vector<float>> values;
};
absl::StatusOr<std::vector<Snapshot>> WatchRun(const RunContext& context, Surroundings* time,
                                               Worker* reader);

// Evaluates them: all but the last one on a part of the held-out data.
std::vector<Point> Evaluated(const Workload& workload, const std::vector<Snapshot>& snapshots);

// Puts the parts of a run together; the last point is of its end. Times count from the first step.
RunResult Assemble(const RunContext& context, std::vector<WorkerRecord> workers,
                   std::vector<Point> points);

// A record as JSON, and back: processes of a run write theirs to files.
nlohmann::json ToJson(const WorkerRecord& record);
WorkerRecord RecordFrom(const nlohmann::json& json);  // throws nlohmann::json::exception

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_TRAIN_H_
