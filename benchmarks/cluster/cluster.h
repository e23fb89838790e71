// Cluster is a cluster of processes on this machine, over a chosen transport.
#ifndef LEEWAY_BENCHMARKS_CLUSTER_CLUSTER_H_
#define LEEWAY_BENCHMARKS_CLUSTER_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "harness/child.h"
#include "leeway/config.h"
#include "leeway/worker.h"
#include "runtime/loop/loop.h"
#include "van/van.h"

namespace leeway::bench {

struct ClusterShape {
  std::string transport = "tcp";  // between servers and workers: tcp, zmq, ipc, shm, shm_lent, rdma
  int servers = 1;
  int server_threads = 1;
  int workers = 1;
  std::string scheduler_host = "127.0.0.1";
  std::string server_host = {};  // empty: the address that servers find by themselves
  // Called in each server's process before it starts. Optional.
  std::function<absl::Status()> place_server = nullptr;
};

// shm_lent, rdma_lent: as shm and rdma, with tensors in memory of Worker::Allocate.
bool Allocates(const std::string& transport);

// INVALID_ARGUMENT for a transport that this build does not have.
absl::StatusOr<std::unique_ptr<van::Factory>> FactoryFor(const std::string& transport);

// The scheduler and the servers, forked; the workers are the caller's. Make it before the process
// has threads.
class Cluster {
 public:
  explicit Cluster(const ClusterShape& shape);

  const Config& worker_config() const { return config_; }
  std::vector<pid_t> servers() const;

 private:
  Config config_;
  Child scheduler_;
  std::vector<Child> servers_;
};

// A worker of the cluster, with the objects that it needs.
class ClusterWorker {
 public:
  static absl::StatusOr<ClusterWorker> Connect(const Config& config, const std::string& transport);
  Worker* get() const { return worker_.get(); }

 private:
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CLUSTER_CLUSTER_H_
