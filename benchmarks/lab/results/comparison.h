// A Comparison sets the results of several folders beside each other, setting by setting: of one
// experiment on both engines, or before and after a change of the code.
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_COMPARISON_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_COMPARISON_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/lab/results/findings.h"

namespace leeway::lab {

struct Compared {
  std::string name;  // of the folder
  bool has_target = false, has_score = false;
  double target = 0;          // if it has one
  std::string workload = {};  // of its first run
  Findings findings;
};

// A table, and sentences below it: how far the times of the others are from those of the first, and
// whether the settings come to the target in the same order. FAILED_PRECONDITION: the results have
// no setting in common.
absl::StatusOr<std::string> ComparisonOf(const std::vector<Compared>& folders);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_COMPARISON_H_
