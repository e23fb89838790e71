// `leeway train`: Fashion-MNIST on its own cluster, as a worker of another cluster, or without a
// cluster.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"
#include "examples/fashion_mnist/parameters_file.h"
#include "examples/fashion_mnist/reference.h"
#include "examples/fashion_mnist/train_worker.h"
#include "leeway/config.h"
#include "leeway/worker.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_system.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"
#include "tools/train/local_table.h"
#include "tools/train/train_cluster.h"
#include "tools/train/train_json.h"
#include "tools/train/train_printer.h"
#include "tools/train/train_settings.h"

namespace leeway::tools {
namespace {

using fashion_mnist::Dataset;
using fashion_mnist::Outcome;
using fashion_mnist::Settings;

// Checked before training instead of after it.
absl::Status CheckWritable(const char* option, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const auto cannot = [&](const char* why) {
    return absl::FailedPreconditionError(absl::StrCat(option, ": cannot write ", path, ": ", why));
  };
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(there)) return cannot(std::strerror(EISDIR));
  if (std::filesystem::exists(there)) {
    // The new file replaces the old one, which must not happen to a device or a pipe.
    if (!std::filesystem::is_regular_file(there)) return cannot("it is no ordinary file");
    if (access(path.c_str(), W_OK) != 0) return cannot(std::strerror(errno));
  }
  // Only writing tells: permissions say nothing of read-only and special file systems.
  const std::string probe = absl::StrCat(path, ".probe-", getpid());
  const int fd = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return cannot(std::strerror(errno));
  close(fd);
  unlink(probe.c_str());
  return absl::OkStatus();
}

absl::StatusOr<Dataset> LoadData(const Settings& settings) {
  absl::StatusOr<Dataset> data = fashion_mnist::LoadDataset(settings.data);
  if (data.ok()) return data;
  return absl::Status(data.status().code(), absl::StrCat("--data: ", data.status().message()));
}

absl::Status WriteResults(const TrainCommand& command, const Settings& settings,
                          absl::string_view mode, const Outcome& outcome) {
  if (!command.json.empty()) {
    LEEWAY_RETURN_IF_ERROR(runtime::WriteFileAtomically(runtime::RealFileSystem(), command.json,
                                                        TrainJson(settings, mode, outcome)));
  }
  if (command.save.empty()) return absl::OkStatus();
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<fashion_mnist::Model> model,
                          fashion_mnist::MakeModel(settings.model, settings.seed));
  return fashion_mnist::SaveParameters(command.save, model->parameters(), outcome.values);
}

absl::Status Report(const TrainCommand& command, const Settings& settings, absl::string_view mode,
                    const Outcome& outcome, TrainPrinter* printer) {
  LEEWAY_RETURN_IF_ERROR(WriteResults(command, settings, mode, outcome));
  if (!command.quiet) printer->Print(SummaryLine(settings, mode, outcome));
  return absl::OkStatus();
}

absl::Status TrainAlone(const TrainCommand& command, const Settings& settings) {
  LEEWAY_ASSIGN_OR_RETURN(const Dataset data, LoadData(settings));
  TrainPrinter printer(command.quiet, command.steps_to_launcher);
  LEEWAY_ASSIGN_OR_RETURN(
      const Outcome outcome,
      fashion_mnist::TrainReference(settings, data, printer.observer(), MakeLocalTable));
  return Report(command, settings, "reference", outcome, &printer);
}

absl::Status TrainAsWorker(const TrainCommand& command, Settings settings) {
  LEEWAY_ASSIGN_OR_RETURN(const Config config, ConfigFor(Role::kWorker, {}));
  LEEWAY_ASSIGN_OR_RETURN(const Dataset data, LoadData(settings));
  LEEWAY_ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Connect(config));
  settings.workers = worker->num_workers();
  settings.servers = worker->num_servers();
  TrainPrinter printer(command.quiet, command.steps_to_launcher);
  LEEWAY_ASSIGN_OR_RETURN(
      const Outcome outcome,
      fashion_mnist::TrainWorker(settings, data, printer.observer(), worker.get()));
  LEEWAY_RETURN_IF_ERROR(worker->Leave());
  if (worker->rank() != 0) return absl::OkStatus();
  return Report(command, settings, settings.consistency.ToString(), outcome, &printer);
}

absl::StatusOr<int> Train(const TrainCommand& command) {
  LEEWAY_ASSIGN_OR_RETURN(const Config config, Config::FromEnvironment());
  TrainCommand told = command;
  if (config.role == Role::kWorker) {  // a worker of a cluster that another launcher has started
    told.workers = config.num_workers;
    told.servers = config.num_servers;
  }
  LEEWAY_ASSIGN_OR_RETURN(const Settings settings, SettingsFrom(told));
  LEEWAY_RETURN_IF_ERROR(CheckWritable("--json", command.json));
  LEEWAY_RETURN_IF_ERROR(CheckWritable("--save", command.save));
  if (config.plugins.empty()) LEEWAY_RETURN_IF_ERROR(CheckUpdater(settings));
  if (command.restore && command.checkpoints.empty()) {
    return absl::InvalidArgumentError("--restore needs --checkpoint FOLDER");
  }
  if (command.reference && settings.codec != "none") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--codec is ", settings.codec,
        " but --reference trains without a cluster, where nothing is encoded: leave one out"));
  }
  if (command.reference) {
    LEEWAY_RETURN_IF_ERROR(TrainAlone(command, settings));
    return 0;
  }
  switch (config.role) {
    case Role::kUnknown:
      // One clear error now instead of one from each worker.
      LEEWAY_RETURN_IF_ERROR(LoadData(settings).status());
      return TrainOnOwnCluster(command, settings);
    case Role::kWorker:
      LEEWAY_RETURN_IF_ERROR(TrainAsWorker(command, settings));
      return 0;
    default:
      return absl::InvalidArgumentError(absl::StrCat(
          "LEEWAY_ROLE is ", Name(config.role),
          " but `leeway train` is a worker: unset it to train on a cluster of its own"));
  }
}

}  // namespace

int RunTrainCommand(const TrainCommand& command) {
  const absl::StatusOr<int> code = Train(command);
  return code.ok() ? *code : Complain(code.status());
}

}  // namespace leeway::tools
