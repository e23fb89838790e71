#include <cstdio>
#include <vector>

#include "leeway/worker.h"

int main() {
  auto worker = leeway::Worker::Connect();  // settings from the environment (LEEWAY_SCHEDULER, …)
  if (!worker.ok()) return std::fprintf(stderr, "%s\n", worker.status().ToString().c_str()), 1;

  auto spec = leeway::TableSpec::Dense("weights", {1000});
  spec.updater = {.name = "sgd", .parameters = {{"learning_rate", 0.1}}};
  spec.consistency = leeway::Consistency::Ssp(3);  // never more than 3 clocks ahead of the slowest
  auto table = (*worker)->CreateTable(spec);
  if (!table.ok()) return std::fprintf(stderr, "%s\n", table.status().ToString().c_str()), 1;

  std::vector<float> weights(1000), gradient(1000);
  for (int step = 0; step < 100; ++step) {
    auto status = (*worker)->Wait(table->Pull(std::span<float>(weights)));
    for (int i = 0; i < 1000; ++i) gradient[i] = weights[i] - 1;  // towards 1
    if (status.ok()) status = (*worker)->Wait(table->Push(std::span<const float>(gradient)));
    if (status.ok()) status = (*worker)->Clock();
    if (!status.ok()) return std::fprintf(stderr, "%s\n", status.ToString().c_str()), 1;
  }
  std::printf("worker %u: weights[0] = %g\n", (*worker)->rank(), weights[0]);
}
