// A LocalCluster is a whole cluster in this process: a scheduler, servers and workers with real
// threads.
#ifndef LEEWAY_TESTS_SUPPORT_LOCAL_CLUSTER_H_
#define LEEWAY_TESTS_SUPPORT_LOCAL_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "leeway/worker.h"
#include "van/van.h"

namespace leeway::tests {

class LocalCluster {
 public:
  // ZeroMQ within the process, our own TCP, ZeroMQ over TCP.
  enum class Net { kInproc, kTcp, kZmqTcp, kRdma };  // kRdma: on a device in memory
  struct Setup {
    std::uint32_t servers = 1;
    std::uint32_t workers = 1;
    Net net = Net::kInproc;
    Config config;  // role, scheduler and counts are filled in
    // Puts a layer between the cluster and its network.
    std::function<std::unique_ptr<van::Factory>(std::unique_ptr<van::Factory>)> wrap = nullptr;
    bool servers_never_hold = false;  // ps' test-only switch: pulls are answered at once
  };

  static absl::StatusOr<std::unique_ptr<LocalCluster>> Start(const Setup& setup);
  ~LocalCluster();

  // The scheduler's address, e.g. "tcp://127.0.0.1:40123".
  const std::string& scheduler_address() const;
  // The scheduler's status, as `leeway status` gets it: members, endpoints and counters as JSON.
  std::string SchedulerStatus() const;
  // The settings of a worker of this cluster.
  Config WorkerConfig() const;

  // Joins as a worker; returns once all announced workers have (so call it from as many threads).
  absl::StatusOr<std::unique_ptr<Worker>> Connect();
  // Likewise with other settings, such as Config::elastic.
  absl::StatusOr<std::unique_ptr<Worker>> Connect(const Config& config);
  // Connects all announced workers, runs `body` for each in a thread of its own, and lets them
  // leave. The first error of a Connect.
  absl::Status RunWorkers(const std::function<void(Worker*)>& body);

  // Waits until the cluster has ended by itself, after the last worker left. Returns its result.
  absl::Status Finish();

 private:
  LocalCluster();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_SUPPORT_LOCAL_CLUSTER_H_
