// A SimCluster is a whole cluster in one thread on virtual time: the real scheduler, servers and
// worker cores, each on a simulated host that may be killed and started again.
#ifndef LEEWAY_TESTS_SIMULATION_SIM_CLUSTER_H_
#define LEEWAY_TESTS_SIMULATION_SIM_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/sim/sim_world.h"
#include "tests/simulation/sim_process.h"
#include "van/sim/sim_van.h"

namespace leeway::simulation {

// The disk that all hosts of a run share, and the folder of checkpoints on it.
inline constexpr char kSharedFolder[] = "/shared";
inline constexpr char kSavedFolder[] = "/shared/saved";

class SimCluster {
 public:
  struct Setup {
    std::uint64_t seed = 1;
    Config config;  // role, scheduler and rank are filled in
    ps::DataOptions data_options;
    std::uint32_t spare_servers = 0;  // hosts on which further servers may be started
    bool over_rdma = false;           // SimRdma instead of SimNetwork
  };

  explicit SimCluster(const Setup& setup);
  ~SimCluster();
  SimCluster(const SimCluster&) = delete;
  SimCluster& operator=(const SimCluster&) = delete;

  // Hosts by name: "scheduler", "server0", …, "worker0", …, "reader0", … Workers and servers ask
  // for their host's number as rank, in every incarnation.
  static std::string HostName(Role role, std::uint32_t rank);
  // All hosts of the cluster, running or not, without readers.
  std::vector<std::string> HostNames() const;
  // Hosts that a server may run on; the last ones are spare.
  std::uint32_t server_hosts() const { return config_.num_servers + spare_servers_; }

  // Starts a process on a host that runs none: its first, or, after Kill, a new incarnation with
  // the disk of the one before.
  SimProcess* Start(Role role, std::uint32_t rank = 0);
  // The process dies at once, without a message: its loops stop, its connections break, and bytes
  // that it wrote and did not sync are lost.
  void Kill(const std::string& host);
  // Schedulers started from now on listen at another address of the same host, and processes
  // started from now on look for them there.
  void MoveScheduler();
  // Null if it was never started, or was killed.
  SimProcess* Find(const std::string& host) const;
  bool WasKilled(const std::string& host) const;

  // False if `limit` of virtual time passes first.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit);
  // Adds a line to the trace that is not about a message.
  void Note(absl::string_view line) { world_.Trace(line); }

  runtime::SimWorld& world() { return world_; }
  van::SimNetwork& network() { return network_; }
  SimRdma* rdma() { return rdma_.get(); }  // null: over the network
  std::unique_ptr<van::Factory> NewFactory(const std::string& host) const {
    return place_.NewFactory(host);
  }
  // On the network or on rdma, whichever is used.
  void SetTap(van::SimNetwork::Tap tap);
  const Config& config() const { return config_; }

 private:
  std::string SchedulerAddress() const;

  Config config_;
  std::uint32_t scheduler_moves_ = 0;
  const std::uint32_t spare_servers_;
  runtime::SimWorld world_;
  van::SimNetwork network_;
  const std::unique_ptr<SimRdma> rdma_;
  const SimWorkplace place_;
  std::map<std::string, std::unique_ptr<SimProcess>> processes_;  // by host; null once killed
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SIM_CLUSTER_H_
