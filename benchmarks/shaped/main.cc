// leeway_bench_shaped [RATE [SERVER_THREADS]]: a worker and a server at the two ends of a link of
// that rate, with a connection for each of the server's threads.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cluster/cluster.h"
#include "harness/serve_commands.h"
#include "shaped/link.h"
#include "shaped/steps.h"

namespace leeway::bench {
namespace {

constexpr int kNotThere = 3;  // the driver leaves it out and says why; all else is a failure

int Fail(const absl::Status& status, int code = 1) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return code;
}

int Main(const std::string& rate, int connections) {
  const absl::StatusOr<ShapedLink> link = ShapedLink::Make(rate);
  if (!link.ok()) return Fail(link.status(), kNotThere);
  ClusterShape shape;
  shape.server_threads = connections;
  shape.scheduler_host = ShapedLink::here();
  shape.server_host = ShapedLink::there();
  shape.place_server = [&link] { return link->CrossOver(); };
  const Cluster cluster(shape);
  const auto worker = ClusterWorker::Connect(cluster.worker_config(), shape.transport);
  if (!worker.ok()) return Fail(worker.status());
  LayeredModel model(worker->get());
  if (const absl::Status built = model.Build(); !built.ok()) return Fail(built);
  ServeCommands([&](const Command& command) { return model.Measure(command); });
  return 0;
}

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) {
  const std::string rate = argc > 1 ? argv[1] : "1gbit";
  const int connections = argc > 2 ? std::atoi(argv[2]) : 4;
  return leeway::bench::Main(rate, connections < 1 ? 1 : connections);
}
