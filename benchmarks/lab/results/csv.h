// CsvOf makes the table of an experiment's runs: one row a run (RFC 4180).
#ifndef LEEWAY_BENCHMARKS_LAB_RESULTS_CSV_H_
#define LEEWAY_BENCHMARKS_LAB_RESULTS_CSV_H_

#include <string>
#include <vector>

#include "benchmarks/lab/experiment/experiment.h"
#include "benchmarks/lab/results/run_result.h"

namespace leeway::lab {

std::string CsvOf(const Experiment& experiment, const std::vector<RunResult>& results);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_RESULTS_CSV_H_
