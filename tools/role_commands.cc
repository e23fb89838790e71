// `leeway scheduler` and `leeway server`.
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "leeway/server.h"
#include "proto/tables/text.h"
#include "runtime/log/log.h"
#include "scheduler/control/scheduler.h"
#include "tools/options/commands.h"
#include "tools/options/role_config.h"
#include "van/mixed/mixed_van.h"

namespace leeway::tools {

int Complain(const absl::Status& why) {
  // The text may come from a file or a peer.
  const std::string text = proto::Cleaned(why.message(), proto::Lines::kMany);
  std::fprintf(stderr, "leeway: %s\n", text.c_str());
  return 1;
}

absl::Status CheckTransport() {
  const absl::StatusOr<Config> config = Config::FromEnvironment();
  return config.ok() ? van::NewFactory(*config)->Viable() : config.status();
}

absl::StatusOr<Config> ConfigFor(Role role, const RoleCommand& command) {
  absl::StatusOr<Config> config = Config::FromEnvironment();
  if (!config.ok()) return config;
  const Role said = config->role;
  if (role != Role::kTool && said != Role::kUnknown && said != role) {
    return absl::InvalidArgumentError(absl::StrCat("LEEWAY_ROLE is ", Name(said), " but this is a ",
                                                   Name(role), ": unset it, or set it to ",
                                                   Name(role)));
  }
  config->role = role;
  if (!command.scheduler.empty()) config->scheduler = command.scheduler;
  if (command.servers.has_value()) config->num_servers = *command.servers;
  if (command.workers.has_value()) config->num_workers = *command.workers;
  if (!command.restore.empty()) config->restore = command.restore;
  if (absl::Status status = config->Validate(); !status.ok()) return status;
  runtime::SetLogLevel(*runtime::ParseLogLevel(config->log_level));
  runtime::SetLogName(Name(role));
  return config;
}

namespace {

// To be stopped by a signal is no error.
int Ended(const absl::Status& status) {
  if (status.ok()) return 0;
  if (!absl::IsCancelled(status)) return Complain(status);
  runtime::LogInfo(status.message());
  return 1;
}

}  // namespace

int RunSchedulerCommand(const RoleCommand& command) {
  const absl::StatusOr<Config> config = ConfigFor(Role::kScheduler, command);
  if (!config.ok()) return Complain(config.status());
  return Ended(scheduler::RunScheduler(*config));
}

int RunServerCommand(const RoleCommand& command) {
  const absl::StatusOr<Config> config = ConfigFor(Role::kServer, command);
  if (!config.ok()) return Complain(config.status());
  return Ended(RunServer(*config));
}

}  // namespace leeway::tools
