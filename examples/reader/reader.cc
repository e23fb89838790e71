// A reader's program: watches a table of a running cluster; nothing waits for it.
//
//     LEEWAY_SCHEDULER=host:port ./reader w        # prints a line a second, until the cluster ends
//
// It may be started and stopped at any time once the cluster is complete, also many times at once.
#include <chrono>
#include <cstdio>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "leeway/config.h"
#include "leeway/worker.h"

int Complain(const absl::Status& status) {
  std::fprintf(stderr, "reader: %s\n", status.ToString().c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: reader TABLE\n");
    return 2;
  }
  absl::StatusOr<leeway::Config> config = leeway::Config::FromEnvironment();
  if (!config.ok()) return Complain(config.status());
  config->read_only = true;  // or LEEWAY_READ_ONLY=1
  const auto reader = leeway::Worker::Connect(*config);
  if (!reader.ok()) return Complain(reader.status());
  const absl::StatusOr<leeway::Table> table = (*reader)->OpenTable(argv[1]);
  if (!table.ok()) return Complain(table.status());
  if (table->spec().kind != leeway::TableKind::kDense ||
      table->spec().dtype != leeway::DType::kFloat32) {
    return Complain(absl::InvalidArgumentError("this example reads dense tables of float32"));
  }
  std::vector<float> values(table->spec().NumElements());
  for (;;) {
    const leeway::Ticket ticket = table->Pull(std::span<float>(values));
    if (const absl::Status pulled = (*reader)->Wait(ticket); !pulled.ok()) return Complain(pulled);
    const absl::StatusOr<leeway::PullInfo> info = (*reader)->Info(ticket);
    if (!info.ok()) return Complain(info.status());
    std::printf(
        "clock %llu, version %llu: mean %g\n", static_cast<unsigned long long>(info->clock),
        static_cast<unsigned long long>(info->version),
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()));
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}
