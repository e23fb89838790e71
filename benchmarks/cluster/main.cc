// leeway_bench_cluster [TRANSPORT [WORKERS [SERVER_THREADS]]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/sum.h"
#include "cluster/work.h"
#include "cluster/workers.h"
#include "harness/serve_commands.h"

namespace leeway::bench {
namespace {

int Main(const ClusterShape& shape) {
  if (const auto factory = FactoryFor(shape.transport); !factory.ok()) {
    std::fprintf(stderr, "%s\n", std::string(factory.status().message()).c_str());
    return 3;  // the driver takes 3 for "not available here", all other codes for a failure
  }
  const Cluster cluster(shape);
  OtherWorkers others(shape.workers - 1, cluster.worker_config(), shape.transport);
  const auto worker = ClusterWorker::Connect(cluster.worker_config(), shape.transport);
  if (!worker.ok()) {
    std::fprintf(stderr, "%s\n", worker.status().ToString().c_str());
    return 1;
  }
  std::vector<pid_t> processes = cluster.servers();
  for (const pid_t pid : others.pids()) processes.push_back(pid);
  Work work(worker->get(), processes, Allocates(shape.transport));
  ServeCommands([&](const Command& command) {
    if (command.op == "sum" || command.op == "sum_far") return MeasureSum(command);
    others.Begin(command);
    Measured measured = work.Measure(command);
    others.AddTo(&measured);
    return measured;
  });
  return 0;
}

int Number(const char* text) { return std::max(1, std::atoi(text)); }

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) {
  leeway::bench::ClusterShape shape;
  // An rdma device is reached only at its own address.
  if (const char* host = std::getenv("LEEWAY_HOST"))
    shape.scheduler_host = shape.server_host = host;
  if (argc > 1) shape.transport = argv[1];
  if (argc > 2) shape.workers = leeway::bench::Number(argv[2]);
  if (argc > 3) shape.server_threads = leeway::bench::Number(argv[3]);
  return leeway::bench::Main(shape);
}
