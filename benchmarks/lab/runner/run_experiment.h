// RunExperiment runs what an experiment still lacks, each run in a process of its own.
#ifndef LEEWAY_BENCHMARKS_LAB_RUNNER_RUN_EXPERIMENT_H_
#define LEEWAY_BENCHMARKS_LAB_RUNNER_RUN_EXPERIMENT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/experiment.h"
#include "benchmarks/lab/results/folder.h"

namespace leeway::lab {

struct RunnerOptions {
  std::uint32_t jobs = 0;  // virtual runs at a time; 0: as many as there are processors
  bool quiet = false;      // no progress bar
};

struct Tally {
  std::size_t kept = 0;    // were finished before
  std::size_t ended = 0;   // ran now
  std::size_t failed = 0;  // their reasons were printed
};

// Runs of the folder that are finished stay as they are, so that an interrupted experiment goes on.
// A run that fails is said on standard error, and the others go on. Real runs go one at a time.
absl::StatusOr<Tally> RunExperiment(const Experiment& experiment, const ResultFolder& folder,
                                    const RunnerOptions& options);

// What the process of one run does: reads the plan from a file, and saves the result in the folder.
absl::Status RunOne(const std::string& plan_file, const ResultFolder& folder);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RUNNER_RUN_EXPERIMENT_H_
