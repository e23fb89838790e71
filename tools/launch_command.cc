// `leeway launch`: a whole cluster on this machine.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/config/address.h"
#include "tools/admin/inquiry.h"
#include "tools/launch/cluster.h"
#include "tools/launch/guard.h"
#include "tools/launch/log_files.h"
#include "tools/launch/output.h"
#include "tools/launch/supervisor.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"

namespace leeway::tools {
namespace {

void Say(absl::string_view line) {
  std::fprintf(stderr, "leeway: %s\n", std::string(line).c_str());
}

void SayItIsNotUsed(absl::string_view name, absl::string_view value) {
  Say(absl::StrCat("launch gives each process its place: ", name, "=", value,
                   " of the environment is not used"));
}

// Names the settings of the environment that the launcher overrides, unless they equal the command
// line's.
void NameWhatIsOverridden(absl::string_view scheduler) {
  for (const char* name : {"LEEWAY_ROLE", "LEEWAY_RANK", "LEEWAY_SCHEDULER", "LEEWAY_NUM_SERVERS",
                           "LEEWAY_NUM_WORKERS", "DMLC_ROLE", "DMLC_PS_ROOT_URI",
                           "DMLC_PS_ROOT_PORT", "DMLC_NUM_SERVER", "DMLC_NUM_WORKER"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && value != scheduler) SayItIsNotUsed(name, value);
  }
  // A new cluster has no place for either.
  for (const char* name : {"LEEWAY_READ_ONLY", "LEEWAY_ELASTIC"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && absl::string_view(value) != "0") SayItIsNotUsed(name, value);
  }
}

constexpr absl::Duration kStatusPatience = absl::Seconds(1);

// Whether the scheduler says that the cluster is complete; nullopt: it does not answer. A worker
// whose Worker::Connect has succeeded has seen it complete.
std::optional<bool> IsComplete(const std::string& scheduler) {
  absl::StatusOr<Config> config = Config::FromEnvironment();
  const absl::StatusOr<std::string> address = runtime::NormalizeAddress(scheduler);
  if (!config.ok() || !address.ok()) return std::nullopt;
  const absl::StatusOr<std::string> answer =
      AskForStatus({*address}, Role::kScheduler, kStatusPatience, *config)[0];
  if (!answer.ok()) return std::nullopt;
  const auto status = nlohmann::json::parse(*answer, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return std::nullopt;
  return status.value("complete", false);
}

}  // namespace

int RunLaunchCommand(const LaunchCommand& command) {
  launch::ClusterSpec cluster;
  cluster.servers = command.servers;
  cluster.workers = command.workers;
  cluster.scheduler = command.scheduler;
  cluster.leeway = launch::OwnProgram();
  cluster.server_program = command.server_program;
  cluster.program = command.program;
  absl::StatusOr<std::vector<launch::ProcessSpec>> processes = launch::PlanCluster(cluster);
  if (!processes.ok()) return Complain(processes.status());
  if (absl::Status status = CheckTransport(); !status.ok()) return Complain(status);
  absl::StatusOr<launch::LogFiles> logs = launch::LogFiles::Open(command.log_dir, *processes);
  if (!logs.ok()) return Complain(logs.status());
  NameWhatIsOverridden(command.scheduler);
  if (command.restart != "never") launch::ReplaceFailedServers(&*processes);
  return launch::RunGuarded([&] {
    launch::SupervisorOptions options;
    options.end_grace = launch::EndGrace();
    options.restarts_max = command.restarts_max;
    options.on_event = Say;
    options.all_joined = [&] {
      return IsComplete(processes->front().environment["LEEWAY_SCHEDULER"]);
    };
    options.on_line = [&](std::size_t i, launch::Stream stream, absl::string_view line) {
      logs->Add(i, line);
      return launch::PrintPrefixed((*processes)[i].name, i, stream, line);
    };
    const launch::SupervisorResult result = launch::Supervise(*processes, options);
    if (!result.failure.empty()) Say(result.failure);
    return result.exit_code;
  });
}

}  // namespace leeway::tools
