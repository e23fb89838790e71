// Findings are what an experiment's runs show together: one row for each setting, over its seeds,
// and sentences that say what follows from them and what does not.
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_FINDINGS_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_FINDINGS_H_

#include <map>
#include <string>
#include <vector>

#include "benchmarks/lab/experiment/experiment.h"
#include "benchmarks/lab/results/run_result.h"

namespace leeway::lab {

// Mean and sample deviation of n values; of fewer than two there is no deviation (NaN).
struct Spread {
  double mean = 0, deviation = 0;
  std::size_t n = 0;
};
Spread SpreadOf(const std::vector<double>& values);

struct Setting {
  std::string label;
  std::string score_name;  // empty: its workload has none
  std::size_t runs = 0;
  std::size_t reached = 0;   // runs that came to the target
  Spread seconds_to_target;  // of these
  Spread seconds, loss, score, bytes;
  std::map<std::string, Spread> others;
  double computing = 0;  // parts of all workers' time, 0 to 1
  double communicating = 0;
  double waiting = 0;
  double clock_staleness = 0, update_staleness = 0;  // means
  std::uint64_t clock_staleness_max = 0, update_staleness_max = 0;
  std::uint64_t dropped = 0, violations = 0;
  // The first setting that differs from this one in nothing but the first of the fields that vary
  // (policies under the same straggler); this one's own, if it is the first.
  std::string baseline;
  // Its time to the target divided by that of this one, over seeds that both have; NaN without a
  // target.
  Spread speedup;
  std::string paper;  // what was found elsewhere; empty: the experiment does not say
};

// How the epochs to the target grow with the mean staleness in clocks of BSP, SSP and ASP, over the
// runs of settings that differ in that alone: a least-squares line.
struct StalenessSlope {
  std::string label;     // the setting, without its policy
  std::size_t all = 0;   // runs
  std::size_t runs = 0;  // that came to the target
  double epochs = 0;     // the line at no staleness
  double slope = 0;      // epochs a clock
  double error = 0;      // the slope's standard error
  std::string paper;     // as in Setting
};

struct Findings {
  std::vector<Setting> settings;  // in the order of the experiment
  std::vector<StalenessSlope> slopes;
  std::vector<std::string> sentences;
  std::vector<std::string> limits;  // what cannot be concluded
};

// The name of the runs' scores: "score" if they have several, empty if none has one.
std::string ScoreNameOf(const std::vector<RunResult>& results);

Findings FindingsOf(const Experiment& experiment, const std::vector<RunResult>& results);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_FINDINGS_H_
