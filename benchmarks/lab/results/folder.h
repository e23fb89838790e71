// A ResultFolder keeps the results of an experiment: a file a run while it goes on, and the tables
// and the report at its end.
//
//     experiment.toml   the experiment as it was read
//     plans.json        its title and runs, as the command line has changed them
//     runs/HASH.json    one finished run; HASH is of its plan, so that a run is found again
//     results.json      all of them
//     results.csv       one row a run
//     report.html       one page, which needs nothing else
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_FOLDER_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_FOLDER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/experiment.h"
#include "benchmarks/lab/results/run_result.h"
#include "runtime/files/file_system.h"

namespace leeway::lab {

class ResultFolder {
 public:
  // Makes the folder, if it is not there.
  static absl::StatusOr<ResultFolder> Make(const std::string& path);
  // For LoadExperiment, which says whether there is one.
  static ResultFolder Open(const std::string& path) { return ResultFolder(path); }

  const std::string& path() const { return path_; }
  std::string FileOf(const RunPlan& plan) const;

  // `text`: what the experiment was read from.
  absl::Status KeepExperiment(const Experiment& experiment, const std::string& text) const;
  absl::StatusOr<Experiment> LoadExperiment() const;

  // One `run` at a time. ALREADY_EXISTS: there is another.
  absl::StatusOr<std::unique_ptr<runtime::FileLock>> Lock() const;

  // nullopt: it has not been run, or has failed.
  std::optional<RunResult> Load(const RunPlan& plan) const;
  absl::Status Save(const RunResult& result) const;
  // Those of the experiment's runs that are finished, in its order.
  std::vector<RunResult> LoadAll(const Experiment& experiment) const;
  // Writes results.json, results.csv and report.html.
  absl::Status Summarise(const Experiment& experiment, const std::vector<RunResult>& results) const;

 private:
  explicit ResultFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Whole, or not at all: a full disk leaves what was there.
absl::Status WriteFile(const std::string& path, const std::string& text);
absl::StatusOr<std::string> ReadFile(const std::string& path);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_FOLDER_H_
