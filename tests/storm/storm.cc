#include "tests/storm/storm.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status_macros.h"
#include "tests/storm/history_judge.h"
#include "tests/storm/traced_tables.h"

namespace leeway::storm {
namespace {

absl::StatusOr<HistoryVerdict> JudgeHistory(const Cluster& cluster) {
  const std::uint32_t workers = cluster.options().workers;
  LEEWAY_ASSIGN_OR_RETURN(const Consistency consistency,
                          Consistency::Parse(cluster.options().training.mode));
  HistoryJudge judge(TracedTables(workers, cluster.options().training.steps, consistency), workers);
  for (const WorkerProcess& process : cluster.worker_processes()) {
    judge.AddProcess(process.rank, std::make_unique<std::ifstream>(process.history),
                     process.killed_at);
  }
  return judge.Judge();
}

}  // namespace

ClusterOptions ClusterFor(const StormOptions& options, const std::string& mode,
                          const std::string& name) {
  ClusterOptions cluster;
  cluster.training.mode = mode;
  cluster.training.model = options.model;
  cluster.training.steps = options.steps;
  cluster.settings = options.settings;
  cluster.folder = absl::StrCat(options.folder, "/", name, "-",
                                absl::StrReplaceAll(mode, {{":", ""}, {"/", "-"}}));
  return cluster;
}

void PrintRow(const std::string& name, const std::string& value) {
  std::printf("  %-46s %s\n", name.c_str(), value.c_str());
}

absl::Status Finish(Cluster* cluster) {
  cluster->pace().Set(absl::ZeroDuration());
  LEEWAY_RETURN_IF_ERROR(cluster->AwaitEnd(absl::Minutes(15)));
  const Verdict verdict = cluster->acknowledged().Judge();
  const Finished totals = cluster->acknowledged().Totals();
  PrintRow("steps of all workers", absl::StrCat(verdict.pushes));
  PrintRow("acknowledged pushes lost", absl::StrCat(verdict.lost));
  PrintRow("pushes applied twice", absl::StrCat(verdict.applied_twice));
  if (verdict.dropped > 0) {
    PrintRow("pushes dropped, as told to their workers", absl::StrCat(verdict.dropped));
  }
  PrintRow("replies staler than allowed", absl::StrCat(totals.staleness_violations));
  LEEWAY_ASSIGN_OR_RETURN(const HistoryVerdict history, JudgeHistory(*cluster));
  PrintRow("pushes of the history that were judged",
           absl::StrCat(history.pushes, ", ", history.acknowledged, " acknowledged"));
  PrintRow("reads of the history that were judged", absl::StrCat(history.reads));
  if (history.violation.has_value()) {
    PrintRow(absl::StrCat("broken: ", history.violation->invariant), history.violation->what);
  }
  if (verdict.tallies == 0) return absl::InternalError("nobody has read the counters");
  if (!verdict.good()) return absl::DataLossError(verdict.first_mistake);
  if (history.violation.has_value()) {
    return absl::DataLossError(
        absl::StrCat(history.violation->invariant, ": ", history.violation->what));
  }
  if (totals.staleness_violations > 0) {
    return absl::InternalError(
        absl::StrCat(totals.staleness_violations, " replies were staler than allowed"));
  }
  return absl::OkStatus();
}

absl::Duration MedianOf(std::vector<absl::Duration> durations) {
  if (durations.empty()) return absl::ZeroDuration();
  const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
  std::nth_element(durations.begin(), middle, durations.end());
  return *middle;
}

absl::Duration LargestOf(const std::vector<absl::Duration>& durations) {
  return durations.empty() ? absl::ZeroDuration()
                           : *std::max_element(durations.begin(), durations.end());
}

}  // namespace leeway::storm
