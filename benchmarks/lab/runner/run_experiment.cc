#include "benchmarks/lab/runner/run_experiment.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "benchmarks/lab/engine/real_engine.h"
#include "benchmarks/lab/engine/shaped_network.h"
#include "benchmarks/lab/engine/virtual_engine.h"
#include "benchmarks/lab/workloads/registry.h"
#include "runtime/base/status_macros.h"
#include "tools/format/format_units.h"
#include "tools/format/progress_bar.h"
#include "tools/launch/process.h"

namespace leeway::lab {
namespace {

std::string EndOf(int how) {
  return WIFSIGNALED(how)
             ? absl::StrCat("was killed by signal ", WTERMSIG(how), ", ", strsignal(WTERMSIG(how)))
             : absl::StrCat("ended with status ", WEXITSTATUS(how));
}

class Runner {
 public:
  Runner(const Experiment& experiment, const ResultFolder& folder, const RunnerOptions& options)
      : experiment_(experiment),
        folder_(folder),
        jobs_(options.jobs > 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency())),
        varying_(VaryingFields(experiment.runs)),
        bar_(!options.quiet) {}

  absl::StatusOr<Tally> Run() {
    for (const RunPlan& plan : experiment_.runs) {
      folder_.Load(plan).has_value() ? void(++tally_.kept) : waiting_.push_back(&plan);
    }
    std::reverse(waiting_.begin(), waiting_.end());
    LEEWAY_RETURN_IF_ERROR(CheckWorkloads());
    LEEWAY_RETURN_IF_ERROR(CheckLinks());
    const std::size_t all = waiting_.size();
    while (!waiting_.empty() || !running_.empty()) {
      while (MayStart()) LEEWAY_RETURN_IF_ERROR(StartNext());
      Show(all);
      LEEWAY_RETURN_IF_ERROR(AwaitOne());
    }
    return tally_;
  }

 private:
  struct Running {
    const RunPlan* plan = nullptr;
    std::string plan_file;
    std::string log_file;
  };

  // That the data are there, and that the runs suit them, before anything is started.
  absl::Status CheckWorkloads() const {
    std::map<std::string, std::unique_ptr<Workload>> workloads;
    for (const RunPlan* plan : waiting_) {
      std::unique_ptr<Workload>& workload = workloads[plan->workload];
      if (workload == nullptr) {
        LEEWAY_ASSIGN_OR_RETURN(workload, NewWorkload(plan->workload, plan->seed));
      }
      const absl::Status fits = CheckPlan(*plan, *workload);
      if (fits.ok()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(experiment_.name, ": ", LabelOf(*plan, varying_), ": ", fits.message()));
    }
    return absl::OkStatus();
  }

  // What the links of real runs need, before anything is started.
  absl::Status CheckLinks() const {
    const bool shaped =
        std::ranges::any_of(waiting_, [](const RunPlan* plan) { return plan->has_shaped_links(); });
    return shaped ? ShapedNetwork::Check() : absl::OkStatus();
  }

  bool MayStart() const {
    if (waiting_.empty() || running_.size() >= jobs_) return false;
    const auto is_real = [](const RunPlan& plan) { return plan.engine == "real"; };
    return running_.empty() ||
           (!is_real(*waiting_.back()) && !is_real(*running_.begin()->second.plan));
  }

  absl::Status StartNext() {
    Running run;
    run.plan = waiting_.back();
    waiting_.pop_back();
    const std::string file = folder_.FileOf(*run.plan);
    run.plan_file = file + ".plan";
    run.log_file = file + ".log";
    LEEWAY_RETURN_IF_ERROR(WriteFile(run.plan_file, ToJson(*run.plan).dump()));
    const std::string program = launch::OwnProgram();
    const std::string path = folder_.path();
    const pid_t child = fork();
    if (child < 0) return absl::ResourceExhaustedError("cannot start a process for a run");
    if (child == 0) {
      const int log = open(run.log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (log >= 0) dup2(log, STDERR_FILENO);
      execl(program.c_str(), program.c_str(), "one", run.plan_file.c_str(), path.c_str(), nullptr);
      _exit(127);
    }
    running_[child] = std::move(run);
    return absl::OkStatus();
  }

  absl::Status AwaitOne() {
    int how = 0;
    const pid_t child = waitpid(-1, &how, 0);
    const auto found = running_.find(child);
    if (found == running_.end()) return absl::OkStatus();
    const Running run = std::move(found->second);
    running_.erase(found);
    ++tally_.ended;
    if (!WIFEXITED(how) || WEXITSTATUS(how) != 0 || !folder_.Load(*run.plan).has_value()) {
      ++tally_.failed;
      const absl::StatusOr<std::string> log = ReadFile(run.log_file);
      bar_.Print(absl::StrCat(LabelOf(*run.plan, varying_), ", seed ", run.plan->seed, " failed: ",
                              log.ok() && !log->empty()
                                  ? std::string(absl::StripSuffix(*log, "\n"))
                                  : absl::StrCat("its process ", EndOf(how))));
    } else {
      unlink(run.log_file.c_str());
    }
    unlink(run.plan_file.c_str());
    return absl::OkStatus();
  }

  void Show(std::size_t all) {
    const double part = static_cast<double>(tally_.ended) / static_cast<double>(all);
    std::string text = absl::StrFormat("run %d/%d", tally_.ended, all);
    if (tally_.ended > 0) {
      const absl::Duration left = (absl::Now() - begin_) * ((1 - part) / part);
      absl::StrAppend(&text, "  ", absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))),
                      " left");
    }
    bar_.ShowText(part, text);
  }

  const Experiment& experiment_;
  const ResultFolder& folder_;
  const std::size_t jobs_;
  const std::vector<const PlanField*> varying_;
  const absl::Time begin_ = absl::Now();
  tools::ProgressBar bar_;
  std::vector<const RunPlan*> waiting_;  // the next one last
  std::map<pid_t, Running> running_;
  Tally tally_;
};

}  // namespace

absl::StatusOr<Tally> RunExperiment(const Experiment& experiment, const ResultFolder& folder,
                                    const RunnerOptions& options) {
  return Runner(experiment, folder, options).Run();
}

absl::Status RunOne(const std::string& plan_file, const ResultFolder& folder) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(plan_file));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  LEEWAY_ASSIGN_OR_RETURN(const RunPlan plan, PlanFromJson(json));
  LEEWAY_ASSIGN_OR_RETURN(const auto workload, NewWorkload(plan.workload, plan.seed));
  LEEWAY_ASSIGN_OR_RETURN(const RunResult result, plan.engine == "real"
                                                      ? RunReal(plan, *workload)
                                                      : RunVirtual(plan, *workload));
  return folder.Save(result);
}

}  // namespace leeway::lab
