// PlanCluster plans a whole cluster on this machine, as processes to start.
#ifndef LEEWAY_TOOLS_LAUNCH_CLUSTER_H_
#define LEEWAY_TOOLS_LAUNCH_CLUSTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/launch/process.h"

namespace leeway::launch {

struct ClusterSpec {
  // More servers on one machine are most likely a typing error.
  static constexpr std::uint32_t kServersMax = 1024;
  static constexpr std::uint32_t kWorkersMax = 4096;

  std::uint32_t servers = 1;
  std::uint32_t workers = 1;
  std::string scheduler;             // "host:port"; empty: a free port of this machine
  std::string leeway;                // the `leeway` program, to run its `scheduler` and `server`
  std::string server_program;        // instead of `leeway server`; empty: that
  std::vector<std::string> program;  // the workers' program, with its arguments
  std::map<std::string, std::string> environment;  // for every process, on top of our own
};

// The time that scheduler and servers may go on once the work is done: they may have a checkpoint
// to save (LEEWAY_CHECKPOINT_AT_END in this process's environment).
absl::Duration EndGrace();

// The scheduler, then the servers, then the workers, each placed by its LEEWAY_* variables.
absl::StatusOr<std::vector<ProcessSpec>> PlanCluster(const ClusterSpec& cluster);

// The default number of servers that are replaced before one more failure ends the cluster.
inline constexpr std::uint32_t kRestartsMax = 20;

// Has failed servers replaced, if other servers have their shards (LEEWAY_REPLICATION in this
// process's environment); if not, the launcher says why a failed server is not replaced.
void ReplaceFailedServers(std::vector<ProcessSpec>* processes);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_CLUSTER_H_
