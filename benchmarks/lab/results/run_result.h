// A RunResult is what one run has shown.
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_RUN_RESULT_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_RUN_RESULT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/run_plan.h"

namespace leeway::lab {

// The model at one time, as a reader saw it.
struct Point {
  double seconds = 0;
  double epochs = 0;
  double bytes = 0;  // payload of all workers until then
  double loss = 0;   // on held-out data
  double score = 0;
  std::map<std::string, double> others = {};  // Evaluation::others
};

// A worker's time, in seconds of the run.
struct WorkerTime {
  std::uint64_t steps = 0;
  double compute_s = 0;
  double communicate_s = 0;  // of its waiting, what an undisturbed pull takes
  double wait_s = 0;         // the rest of it: for other workers, and for servers that are busy
  double last_s = 0;         // when its last step ended
  double train_loss = 0;     // mean over its last tenth of steps
};

// One step on the timeline: the pull began, its values were there, the gradient was pushed. Of
// local steps: the step before was over, an exchange too, and this step.
struct TimelineStep {
  double pull_s = 0, compute_s = 0, push_s = 0;
};

struct RunResult {
  RunPlan plan;
  std::string error;  // empty: it ended well
  std::string score_name;
  std::vector<Point> points;
  Point last;  // after all pushes, on all held-out data
  std::vector<WorkerTime> workers;
  std::vector<std::vector<TimelineStep>> timeline;          // by worker: its first steps
  std::map<std::uint64_t, std::uint64_t> clock_staleness;   // clocks → replies to pulls
  std::map<std::uint64_t, std::uint64_t> update_staleness;  // τ → pushes, all shards
  std::uint64_t dropped = 0;                                // requests of pushes
  std::uint64_t violations = 0;                             // pulls staler than promised
};

nlohmann::ordered_json ToJson(const RunResult& result);
absl::StatusOr<RunResult> ResultFromJson(const nlohmann::json& json);
nlohmann::ordered_json ToJson(const Point& point);
Point PointFrom(const nlohmann::json& json);  // throws nlohmann::json::exception

// Seconds until the score first reached `target` at a point and stayed there at the next; negative:
// never. Of workloads without a score: until the loss fell to it.
double SecondsTo(const RunResult& result, double target);
// Likewise in epochs.
double EpochsTo(const RunResult& result, double target);
double MeanOf(const std::map<std::uint64_t, std::uint64_t>& histogram);
std::uint64_t MaxOf(const std::map<std::uint64_t, std::uint64_t>& histogram);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_RUN_RESULT_H_
