// An Experiment is a set of runs, read from a file in TOML.
//
//     title = "SSP beside BSP"
//     about = "What the paper says, and where."
//     target = 0.85                     # the score (or loss) whose time is compared
//     workers = 8
//     policy = ["bsp", "ssp:8", "asp"]  # any field of a plan may be a list: the grid is run
//     seed = [1, 2, 3]                  # a run that comes up twice is one run
//     [[variant]]                       # optional: fields that go together; each makes a grid
//     learning_rate = 0.1
//     [[paper]]                         # optional: what was found of a setting elsewhere
//     setting = "ssp:8"                 # its values of the fields that vary
//     says = "1.5 times as fast as BSP (Ho et al. 2013)"
//
// Fields are those of PlanFields (`leeway lab list`).
#ifndef LEEWAY_BENCHMARKS_LAB_EXPERIMENT_EXPERIMENT_H_
#define LEEWAY_BENCHMARKS_LAB_EXPERIMENT_EXPERIMENT_H_

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/lab/experiment/run_plan.h"

namespace leeway::lab {

struct Experiment {
  std::string name;  // of its file, without folder and ending
  std::string title;
  std::string about;
  double target = std::nan("");  // none
  std::vector<RunPlan> runs;     // seeds vary fastest
  // What was found elsewhere, by LabelOf or LabelWithoutPolicy.
  std::map<std::string, std::string> paper;
};

// What the command line says instead of the file.
struct Overrides {
  std::string engine;       // empty: the file's
  double epochs = 0;        // 0: the file's
  std::uint32_t seeds = 0;  // only the first so many of the file's; 0: all
};

// INVALID_ARGUMENT: "FILE:LINE: key: …" — an unknown key, a value of a wrong kind or out of range,
// or fields that do not go together.
absl::StatusOr<Experiment> ParseExperiment(const std::string& file, const std::string& text,
                                           const Overrides& overrides);

// The fields in which the runs differ: what names a run in tables and plots. Without the seed, and
// without the learning rate where the others tell it (a policy or an updater has one of its own).
std::vector<const PlanField*> VaryingFields(const std::vector<RunPlan>& runs);
std::string LabelOf(const RunPlan& plan, const std::vector<const PlanField*>& varying);
// That of all runs that differ in their policy alone.
std::string LabelWithoutPolicy(const RunPlan& plan, std::vector<const PlanField*> varying);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_EXPERIMENT_EXPERIMENT_H_
