#include "benchmarks/lab/lab.h"

#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "benchmarks/lab/engine/real_engine.h"
#include "benchmarks/lab/experiment/experiment.h"
#include "benchmarks/lab/presets/presets.h"
#include "benchmarks/lab/results/comparison.h"
#include "benchmarks/lab/results/findings.h"
#include "benchmarks/lab/results/folder.h"
#include "benchmarks/lab/runner/run_experiment.h"
#include "benchmarks/lab/workloads/registry.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "tools/options/commands.h"

namespace leeway::lab {
namespace {

struct RunCommand {
  std::string file;
  std::string preset;
  std::string out;
  Overrides overrides;
  RunnerOptions runner;
  bool quick = false;
};

absl::StatusOr<std::string> PresetText(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [known, text] : Presets()) {
    if (known == name) return std::string(text);
    names.emplace_back(known);
  }
  return absl::NotFoundError(
      absl::StrCat("there is no preset '", name, "': there are ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<Experiment> LoadExperiment(const RunCommand& command, std::string* text) {
  if (command.file.empty() == command.preset.empty()) {
    return absl::InvalidArgumentError(
        "name an experiment's file, or one of the program's with --preset NAME (`leeway lab "
        "list`)");
  }
  if (!command.preset.empty()) {
    LEEWAY_ASSIGN_OR_RETURN(*text, PresetText(command.preset));
    return ParseExperiment(command.preset + ".toml", *text, command.overrides);
  }
  LEEWAY_ASSIGN_OR_RETURN(*text, ReadFile(command.file));
  return ParseExperiment(command.file, *text, command.overrides);
}

absl::Status Summarise(const Experiment& experiment, const ResultFolder& folder) {
  const std::vector<RunResult> results = folder.LoadAll(experiment);
  LEEWAY_RETURN_IF_ERROR(folder.Summarise(experiment, results));
  const Findings findings = FindingsOf(experiment, results);
  for (const std::string& sentence : findings.sentences) std::printf("- %s\n", sentence.c_str());
  std::printf("%s/report.html\n", folder.path().c_str());
  return absl::OkStatus();
}

absl::Status Run(RunCommand command) {
  if (command.quick) {
    if (command.overrides.epochs == 0) command.overrides.epochs = 0.25;
    if (command.overrides.seeds == 0) command.overrides.seeds = 1;
  }
  std::string text;
  LEEWAY_ASSIGN_OR_RETURN(const Experiment experiment, LoadExperiment(command, &text));
  const std::string out =
      command.out.empty() ? absl::StrCat("out/lab/", experiment.name) : command.out;
  LEEWAY_ASSIGN_OR_RETURN(const ResultFolder folder, ResultFolder::Make(out));
  LEEWAY_ASSIGN_OR_RETURN(const auto lock, folder.Lock());
  LEEWAY_RETURN_IF_ERROR(folder.KeepExperiment(experiment, text));
  LEEWAY_ASSIGN_OR_RETURN(const Tally tally, RunExperiment(experiment, folder, command.runner));
  if (tally.kept > 0) std::printf("%zu runs were there already\n", tally.kept);
  LEEWAY_RETURN_IF_ERROR(Summarise(experiment, folder));
  if (tally.failed == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(tally.failed, " of ", experiment.runs.size(),
                                          " runs failed; the others are kept"));
}

absl::Status Report(const std::string& path) {
  const ResultFolder folder = ResultFolder::Open(path);
  LEEWAY_ASSIGN_OR_RETURN(const Experiment experiment, folder.LoadExperiment());
  return Summarise(experiment, folder);
}

absl::Status Compare(const std::vector<std::string>& paths) {
  std::vector<Compared> compared;
  for (const std::string& path : paths) {
    const ResultFolder folder = ResultFolder::Open(path);
    LEEWAY_ASSIGN_OR_RETURN(const Experiment experiment, folder.LoadExperiment());
    const std::vector<RunResult> results = folder.LoadAll(experiment);
    compared.push_back({.name = path,
                        .has_target = !std::isnan(experiment.target),
                        .has_score = !results.empty() && !results.front().score_name.empty(),
                        .target = experiment.target,
                        .workload = results.empty() ? "" : results.front().plan.workload,
                        .findings = FindingsOf(experiment, results)});
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, ComparisonOf(compared));
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

void List() {
  std::printf("presets (leeway lab run --preset NAME):\n");
  for (const auto& [name, text] : Presets()) {
    const auto experiment =
        ParseExperiment(std::string(name) + ".toml", std::string(text), Overrides{});
    std::printf(
        "  %-24s %s\n", std::string(name).c_str(),
        experiment.ok()
            ? absl::StrCat(experiment->title, " (", experiment->runs.size(), " runs)").c_str()
            : std::string(experiment.status().message()).c_str());
  }
  std::printf("workloads:\n  %s\n", absl::StrJoin(WorkloadNames(), "\n  ").c_str());
  std::printf("keys of an experiment, each a value or a list:\n");
  for (const PlanField& field : PlanFields()) {
    std::printf("  %-16s %-20s %s\n", field.name, ValueText(RunPlan{}, field).c_str(), field.about);
  }
}

int Ended(const absl::Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "leeway lab: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace

int RunLab(int argc, char** argv, std::map<std::string, WorkloadMaker> own) {
  for (auto& [name, maker] : own) {
    if (const absl::Status status = AddWorkload(name, std::move(maker)); !status.ok())
      return Ended(status);
  }
  CLI::App app("Experiments on consistency, compression and stragglers.", "leeway lab");
  app.require_subcommand(1);
  RunCommand run;
  CLI::App* const run_app = app.add_subcommand("run", "run an experiment, or go on with one");
  run_app->add_option("EXPERIMENT", run.file, "a file in TOML (docs/lab.md)");
  run_app->add_option("--preset", run.preset, "an experiment of the program's own");
  run_app->add_option("--engine", run.overrides.engine, "virtual or real, whatever the file says");
  run_app->add_option("--out", run.out, "the folder of results (default: out/lab/NAME)");
  run_app->add_option("--epochs", run.overrides.epochs, "instead of the file's")
      ->check(CLI::Range(1e-3, 1e6));
  run_app->add_option("--seeds", run.overrides.seeds, "only the first so many seeds");
  run_app->add_option("--jobs", run.runner.jobs, "virtual runs at a time (default: processors)");
  run_app->add_flag("--quick", run.quick, "a quarter of an epoch, one seed");
  run_app->add_flag("--quiet", run.runner.quiet, "no progress bar");
  CLI::App* const list = app.add_subcommand("list", "show presets, workloads and keys");
  std::string folder;
  CLI::App* const report = app.add_subcommand("report", "write the tables and the page anew");
  report->add_option("FOLDER", folder, "of `run --out`")->required();
  std::vector<std::string> folders;
  CLI::App* const compare =
      app.add_subcommand("compare", "set the results of several folders beside each other");
  compare->add_option("FOLDERS", folders, "of `run --out`: two or more")
      ->required()
      ->expected(2, 16);

  // The program's own processes.
  std::string plan;
  CLI::App* const one = app.add_subcommand("one", "")->group("");
  one->add_option("PLAN", plan)->required();
  one->add_option("FOLDER", folder)->required();
  CLI::App* const node = app.add_subcommand("node", "")->group("");
  node->add_option("FOLDER", folder)->required();
  CLI::App* const scheduler = app.add_subcommand("scheduler", "")->group("");
  CLI::App* const server = app.add_subcommand("server", "")->group("");
  CLI11_PARSE(app, argc, argv);

  if (*run_app) return Ended(Run(run));
  if (*list) return List(), 0;
  if (*report) return Ended(Report(folder));
  if (*compare) return Ended(Compare(folders));
  if (*scheduler) return tools::RunSchedulerCommand({});
  if (*server) return tools::RunServerCommand({});
  runtime::SetLogLevel(runtime::LogLevel::kError);
  if (*node) return Ended(RunNode(folder));
  if (*one) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    const absl::StatusOr<ResultFolder> results = ResultFolder::Make(folder);
    // After an error, threads of a virtual run may stand still for good.
    std::_Exit(Ended(results.ok() ? RunOne(plan, *results) : results.status()));
  }
  return 2;
}

}  // namespace leeway::lab
