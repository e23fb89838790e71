// One worker of benchmarks/policies/pace.py: pulls a table, computes for a given time (it sleeps),
// pushes and ends its clock, until its time is up, and prints how many steps that were.
//
//     leeway_bench_policies MODE SECONDS STEP_MS SLOW_RANK SLOW_FACTOR
//
// MODE is the table's consistency. The worker SLOW_RANK takes SLOW_FACTOR times as long for a step.
#include "leeway/worker.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

constexpr std::size_t kElements = 100'000;

int Fail(const absl::Status& why) {
  std::fprintf(stderr, "%s\n", why.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: %s MODE SECONDS STEP_MS SLOW_RANK SLOW_FACTOR\n", argv[0]);
    return 2;
  }
  const auto mode = leeway::Consistency::Parse(argv[1]);
  if (!mode.ok()) return Fail(mode.status());
  const absl::Duration time = absl::Seconds(std::atof(argv[2]));
  absl::Duration step = absl::Milliseconds(std::atof(argv[3]));
  auto worker = leeway::Worker::Connect();
  if (!worker.ok()) return Fail(worker.status());
  const bool slow = (*worker)->rank() == static_cast<std::uint32_t>(std::atoi(argv[4]));
  if (slow) step *= std::atof(argv[5]);

  auto spec = leeway::TableSpec::Dense("w", {kElements});
  spec.updater = {"sgd", {{"learning_rate", 0.001}}};
  spec.consistency = *mode;
  if (mode->is_bsp() || mode->collects()) spec.aggregate = leeway::Aggregate::kMean;
  const auto table = (*worker)->CreateTable(spec);
  if (!table.ok()) return Fail(table.status());

  std::vector<float> values(kElements);
  absl::Status status = (*worker)->Barrier(leeway::Group::kWorkers, "start");
  // Workers are not all at the same point of their steps.
  absl::SleepFor(step * (*worker)->rank() / (*worker)->num_workers());
  const absl::Time end = absl::Now() + time;
  int steps = 0;
  for (; status.ok() && absl::Now() < end; ++steps) {
    status = (*worker)->Wait(table->Pull(std::span<float>(values)));
    absl::SleepFor(step);
    if (status.ok()) status = (*worker)->Wait(table->Push(std::span<const float>(values)));
    if (status.ok()) status = (*worker)->Clock();
  }
  if (!status.ok()) return Fail(status);
  const auto dropped = (*worker)->stats().parts_dropped;
  std::printf("rank %u steps %d dropped %llu\n", (*worker)->rank(), steps,
              static_cast<unsigned long long>(dropped));
  std::fflush(stdout);
  // The servers' histograms are asked for before the cluster ends.
  if (const char* const ask = std::getenv("LEEWAY_BENCH_STATUS");
      ask != nullptr && (*worker)->rank() == 0 && std::system(ask) != 0) {
    return Fail(absl::InternalError("LEEWAY_BENCH_STATUS failed"));
  }
  return 0;
}
