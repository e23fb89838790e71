// `leeway launch`: a whole cluster on this machine.
#include <cstdio>
#include <utility>

#include "absl/status/statusor.h"
#include "tools/commands.h"
#include "tools/launch/cluster.h"
#include "tools/launch/guard.h"
#include "tools/launch/output.h"
#include "tools/launch/supervisor.h"

namespace leeway::tools {

int RunLaunchCommand(const LaunchCommand& command) {
  launch::ClusterSpec cluster;
  cluster.servers = command.servers;
  cluster.workers = command.workers;
  cluster.scheduler = command.scheduler;
  cluster.leeway = launch::OwnProgram();
  cluster.program = command.program;
  const absl::StatusOr<std::vector<launch::ProcessSpec>> processes = launch::PlanCluster(cluster);
  if (!processes.ok()) return Complain(processes.status());
  return launch::RunGuarded([&] {
    launch::SupervisorOptions options;
    options.settle = launch::SettleTime();
    options.on_line = [&](std::size_t i, launch::Stream stream, absl::string_view line) {
      return launch::PrintPrefixed((*processes)[i].name, i, stream, line);
    };
    const launch::SupervisorResult result = launch::Supervise(*processes, options);
    if (!result.failure.empty()) std::fprintf(stderr, "leeway: %s\n", result.failure.c_str());
    return result.exit_code;
  });
}

}  // namespace leeway::tools
