// A whole cluster on this machine, as processes to start.
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
  // More on one machine is a slip of the finger.
  static constexpr std::uint32_t kServersMax = 1024;
  static constexpr std::uint32_t kWorkersMax = 4096;

  std::uint32_t servers = 1;
  std::uint32_t workers = 1;
  std::string scheduler;             // "host:port"; empty: a free port of this machine
  std::string leeway;                // the program whose `scheduler` and `server` to run
  std::vector<std::string> program;  // what a worker runs, with its arguments
  std::map<std::string, std::string> environment;  // for every process, on top of our own
};

// How long those that serve may go on once the work is done: they may have a checkpoint to save
// (LEEWAY_CHECKPOINT_AT_END in this process's environment).
absl::Duration SettleTime();

// The scheduler, then the servers, then the workers, each told its place by LEEWAY_* variables.
absl::StatusOr<std::vector<ProcessSpec>> PlanCluster(const ClusterSpec& cluster);

// How many servers are replaced unless somebody says otherwise, before one more is the end.
inline constexpr std::uint32_t kRestartsMax = 20;

// Has servers replaced that fail, where others have their shards (LEEWAY_REPLICATION in this
// process's environment); where not, what is said then is why none is.
void ReplaceFailedServers(std::vector<ProcessSpec>* processes);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_CLUSTER_H_
