#include "tools/train/train_cluster.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/format/progress_bar.h"
#include "tools/launch/cluster.h"
#include "tools/launch/guard.h"
#include "tools/launch/output.h"
#include "tools/launch/supervisor.h"
#include "tools/options/role_config.h"
#include "tools/train/train_printer.h"

namespace leeway::tools {
namespace {

// With the default block size each tensor of a small model is one block, and all are on one server.
// Smaller blocks spread it.
constexpr char kBlockBytes[] = "65536";

// Lines of worker 0 are printed without a name, its steps as a bar. Lines of other processes have
// their names.
bool OnLine(const launch::ProcessSpec& process, std::size_t index, launch::Stream stream,
            absl::string_view line, ProgressBar* bar) {
  if (process.name != "worker 0" || stream == launch::Stream::kErrors) {
    return launch::PrintPrefixed(process.name, index, launch::Stream::kErrors, line);
  }
  if (const std::optional<StepLine> step = StepLine::Parse(line)) {
    bar->Show(step->step, step->steps, step->loss);
    return true;
  }
  return bar->Print(line);
}

// The command's cluster, with its settings for checkpoints.
launch::ClusterSpec ClusterOf(const TrainCommand& command,
                              const fashion_mnist::Settings& settings) {
  launch::ClusterSpec cluster = ClusterFor(settings, command.arguments);
  if (!command.checkpoints.empty()) {
    const std::string folder = std::filesystem::absolute(command.checkpoints).string();
    cluster.environment["LEEWAY_CHECKPOINT_DIR"] = folder;
    cluster.environment["LEEWAY_CHECKPOINT_EVERY_S"] = std::to_string(command.checkpoint_every);
    if (command.restore) cluster.environment["LEEWAY_RESTORE"] = folder;
  }
  return cluster;
}

}  // namespace

launch::ClusterSpec ClusterFor(const fashion_mnist::Settings& settings,
                               std::vector<std::string> arguments) {
  launch::ClusterSpec cluster;
  cluster.servers = settings.servers;
  cluster.workers = settings.workers;
  cluster.leeway = launch::OwnProgram();
  cluster.program = std::move(arguments);
  cluster.program[0] = cluster.leeway;
  cluster.program.push_back("--steps-to-launcher");
  for (const auto& [name, value] :
       {std::pair("LEEWAY_BLOCK_BYTES", kBlockBytes), std::pair("LEEWAY_LOG", "warning")}) {
    if (std::getenv(name) == nullptr) cluster.environment[name] = value;
  }
  return cluster;
}

std::vector<std::string> TrainArguments(const TrainCommand& command) {
  std::vector<std::string> arguments = {"leeway", "train"};
  const auto add = [&](const char* option, const auto& value) {
    arguments.push_back(option);
    arguments.push_back(absl::StrCat(value));
  };
  add("--model", command.model);
  add("--mode", command.mode);
  add("--workers", command.workers);
  add("--servers", command.servers);
  add("--batch", command.batch);
  add("--updater", command.updater);
  // All 17 digits, which read back as the same number.
  if (command.rate) add("--rate", absl::StrFormat("%.17g", *command.rate));
  if (command.constant_rate) arguments.push_back("--constant-rate");
  for (const std::string& parameter : command.updater_parameters) {
    add("--updater-parameter", parameter);
  }
  add("--codec", command.codec);
  if (!command.codecs.empty()) add("--codecs", command.codecs);
  add("--error-feedback", command.error_feedback);
  add("--epochs", command.epochs);
  add("--steps", command.steps);
  add("--seed", command.seed);
  if (!command.data.empty()) add("--data", command.data);
  add("--json", command.json);
  return arguments;
}

int TrainOnOwnCluster(const TrainCommand& command, const fashion_mnist::Settings& settings) {
  absl::StatusOr<std::vector<launch::ProcessSpec>> processes =
      launch::PlanCluster(ClusterOf(command, settings));
  if (!processes.ok()) return Complain(processes.status());
  if (absl::Status status = CheckTransport(); !status.ok()) return Complain(status);
  launch::ReplaceFailedServers(&*processes);
  if (!command.quiet) {
    std::fprintf(stderr, "leeway: `leeway status --scheduler %s` shows this cluster\n",
                 processes->front().environment["LEEWAY_SCHEDULER"].c_str());
  }
  return launch::RunGuarded([&] {
    launch::SupervisorResult result;
    {
      ProgressBar bar(!command.quiet);
      launch::SupervisorOptions options;
      options.end_grace = launch::EndGrace();
      options.restarts_max = launch::kRestartsMax;
      options.on_event = [](absl::string_view line) {
        std::fprintf(stderr, "leeway: %s\n", std::string(line).c_str());
      };
      options.on_line = [&](std::size_t i, launch::Stream stream, absl::string_view line) {
        return OnLine((*processes)[i], i, stream, line, &bar);
      };
      result = launch::Supervise(*processes, options);
    }
    if (!result.failure.empty()) std::fprintf(stderr, "leeway: %s\n", result.failure.c_str());
    return result.exit_code;
  });
}

}  // namespace leeway::tools
