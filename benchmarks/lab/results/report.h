// ReportOf makes the page of an experiment: one file with its data, its plots and the library that
// draws them (Chart.js), which needs no network.
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_REPORT_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_REPORT_H_

#include <string>
#include <vector>

#include "benchmarks/lab/experiment/experiment.h"
#include "benchmarks/lab/results/run_result.h"

namespace leeway::lab {

std::string ReportOf(const Experiment& experiment, const std::vector<RunResult>& results);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_REPORT_H_
