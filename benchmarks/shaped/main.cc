// leeway_bench_shaped [RATE [SERVER_THREADS [BURST]]]: a worker and a server at the two ends of a
// link of that rate (shaped/link.h), with a connection for each of the server's threads. Commands
// that begin with "train:" or "switch:" are shaped/train.h's, push and pull are cluster/work.h's,
// others shaped/steps.h's.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "cluster/cluster.h"
#include "cluster/work.h"
#include "harness/serve_commands.h"
#include "shaped/link.h"
#include "shaped/steps.h"
#include "shaped/train.h"

namespace leeway::bench {
namespace {

constexpr int kNotThere = 3;  // the driver reports it as not available; all else is a failure

int Fail(const absl::Status& status, int code = 1) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return code;
}

int Main(const std::string& rate, int connections, const std::string& burst) {
  const absl::StatusOr<ShapedLink> link = ShapedLink::Make(rate, burst);
  if (!link.ok()) return Fail(link.status(), kNotThere);
  ClusterShape shape;
  shape.server_threads = connections;
  shape.scheduler_host = ShapedLink::here();
  shape.server_host = ShapedLink::there();
  shape.place_server = [&link] { return link->CrossOver(); };
  const Cluster cluster(shape);
  const auto worker = ClusterWorker::Connect(cluster.worker_config(), shape.transport);
  if (!worker.ok()) return Fail(worker.status());
  CodedModels coded(worker->get());
  Work work(worker->get(), cluster.servers());
  std::unique_ptr<LayeredModel> layered;  // made at its first use, since it is large
  ServeCommands([&](const Command& command) {
    if (absl::StartsWith(command.op, "train:")) return coded.Measure(command);
    if (absl::StartsWith(command.op, "switch:")) {
      const std::string next = command.op.substr(sizeof("switch:") - 1);
      const std::size_t comma = next.find(',');
      const std::string rate_next = next.substr(0, comma);
      const std::string burst_next = comma == next.npos ? burst : next.substr(comma + 1);
      return coded.MeasureSwitch(command, [&] { return link->Reshape(rate_next, burst_next); });
    }
    if (command.op == "push" || command.op == "pull") return work.Measure(command);
    if (layered == nullptr) {
      layered = std::make_unique<LayeredModel>(worker->get());
      if (const absl::Status built = layered->Build(); !built.ok()) {
        layered.reset();
        Measured failed;
        failed.error = built.ToString();
        return failed;
      }
    }
    return layered->Measure(command);
  });
  return 0;
}

}  // namespace
}  // namespace leeway::bench

int main(int argc, char** argv) {
  const std::string rate = argc > 1 ? argv[1] : "1gbit";
  const int connections = argc > 2 ? std::atoi(argv[2]) : 4;
  const std::string burst = argc > 3 ? argv[3] : "256kb";
  return leeway::bench::Main(rate, connections < 1 ? 1 : connections, burst);
}
