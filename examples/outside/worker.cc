// A worker's program: two workers move a dense tensor towards 1, by the updater of server.cc.
#include "leeway/worker.h"

#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace {

absl::Status Train(leeway::Worker& worker) {
  leeway::TableSpec spec = leeway::TableSpec::Dense("weights", {1000});
  spec.updater = {.name = "signs", .parameters = {{"step", 0.125}}};
  spec.consistency = leeway::Consistency::Bsp();
  const absl::StatusOr<leeway::Table> table = worker.CreateTable(spec);
  if (!table.ok()) return table.status();

  std::vector<float> weights(1000), gradient(1000);
  for (int step = 0; step < 8; ++step) {
    absl::Status status = worker.Wait(table->Pull(std::span<float>(weights)));
    for (std::size_t i = 0; i < weights.size(); ++i) gradient[i] = weights[i] - 1;
    if (status.ok()) status = worker.Wait(table->Push(std::span<const float>(gradient)));
    if (status.ok()) status = worker.Clock();
    if (!status.ok()) return status;
  }
  const absl::Status status = worker.Wait(table->Pull(std::span<float>(weights)));
  if (!status.ok()) return status;
  const absl::StatusOr<std::string> answer = worker.Call(0, "greet", "outside");
  if (!answer.ok()) return answer.status();
  std::printf("worker %u: weights[999] = %g; server 0 says '%s'\n", worker.rank(), weights[999],
              answer->c_str());
  return absl::OkStatus();
}

}  // namespace

int main() {
  auto worker = leeway::Worker::Connect();  // settings from the environment (LEEWAY_SCHEDULER, …)
  const absl::Status status = worker.ok() ? Train(**worker) : worker.status();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
