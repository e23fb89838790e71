#include "benchmarks/lab/results/csv.h"

#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace leeway::lab {
namespace {

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Text(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.9g", value) : std::string();
}

double SumOf(const RunResult& result, double WorkerTime::*part) {
  double sum = 0;
  for (const WorkerTime& worker : result.workers) sum += worker.*part;
  return sum;
}

std::uint64_t StepsOf(const RunResult& result) {
  std::uint64_t steps = 0;
  for (const WorkerTime& worker : result.workers) steps += worker.steps;
  return steps;
}

}  // namespace

std::string CsvOf(const Experiment& experiment, const std::vector<RunResult>& results) {
  using Column = std::pair<std::string, std::function<std::string(const RunResult&)>>;
  std::vector<Column> columns = {
      {"seconds_to_target",
       [&](const RunResult& run) {
         const double seconds =
             std::isnan(experiment.target) ? -1 : SecondsTo(run, experiment.target);
         return seconds < 0 ? "" : Text(seconds);
       }},
      {"seconds", [](const RunResult& run) { return Text(run.last.seconds); }},
      {"loss", [](const RunResult& run) { return Text(run.last.loss); }},
      {"score", [](const RunResult& run) { return Text(run.last.score); }},
      {"bytes", [](const RunResult& run) { return Text(run.last.bytes); }},
      {"steps", [](const RunResult& run) { return absl::StrCat(StepsOf(run)); }},
      {"compute_s", [](const RunResult& run) { return Text(SumOf(run, &WorkerTime::compute_s)); }},
      {"communicate_s",
       [](const RunResult& run) { return Text(SumOf(run, &WorkerTime::communicate_s)); }},
      {"wait_s", [](const RunResult& run) { return Text(SumOf(run, &WorkerTime::wait_s)); }},
      {"clock_staleness_mean",
       [](const RunResult& run) { return Text(MeanOf(run.clock_staleness)); }},
      {"clock_staleness_max",
       [](const RunResult& run) { return absl::StrCat(MaxOf(run.clock_staleness)); }},
      {"update_staleness_mean",
       [](const RunResult& run) { return Text(MeanOf(run.update_staleness)); }},
      {"update_staleness_max",
       [](const RunResult& run) { return absl::StrCat(MaxOf(run.update_staleness)); }},
      {"pushes_dropped", [](const RunResult& run) { return absl::StrCat(run.dropped); }},
      {"staleness_violations", [](const RunResult& run) { return absl::StrCat(run.violations); }},
  };
  std::set<std::string> others;
  for (const RunResult& run : results) {
    for (const auto& [name, value] : run.last.others) others.insert(name);
  }
  for (const std::string& name : others) {
    columns.emplace_back(Quoted(name), [name](const RunResult& run) {
      const auto found = run.last.others.find(name);
      return found == run.last.others.end() ? std::string() : Text(found->second);
    });
  }
  std::vector<std::string> row;
  for (const PlanField& field : PlanFields()) row.emplace_back(field.name);
  for (const Column& column : columns) row.emplace_back(column.first);
  std::string csv = absl::StrCat(absl::StrJoin(row, ","), "\r\n");
  for (const RunResult& run : results) {
    row.clear();
    for (const PlanField& field : PlanFields()) row.push_back(Quoted(ValueText(run.plan, field)));
    for (const Column& column : columns) row.push_back(column.second(run));
    absl::StrAppend(&csv, absl::StrJoin(row, ","), "\r\n");
  }
  return csv;
}

}  // namespace leeway::lab
