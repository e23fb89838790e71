// One worker is slow: how long the others wait for it depends on the mode. On virtual time, so that
// the machine's own load does not count.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/log/log.h"
#include "tests/simulation/sim_cluster.h"
#include "tests/simulation/stepping_worker.h"

namespace leeway::simulation {
namespace {

constexpr std::uint32_t kWorkers = 4;
constexpr int kSteps = 60;
constexpr absl::Duration kFastStep = absl::Milliseconds(5);
constexpr absl::Duration kSlowStep = absl::Milliseconds(55);

struct Outcome {
  absl::Duration fast_workers_waited;
  std::uint64_t max_staleness = 0;
};

Outcome RunWithStraggler(const Consistency& consistency) {
  SimCluster::Setup setup;
  setup.config.num_servers = 2;
  setup.config.num_workers = kWorkers;
  setup.config.num_shards = 4;
  SimCluster cluster(setup);
  cluster.Start(Role::kScheduler);
  for (std::uint32_t i = 0; i < 2; ++i) cluster.Start(Role::kServer, i);
  std::vector<worker::Core*> cores;
  std::size_t ready = 0;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    cores.push_back(cluster.Start(Role::kWorker, i)->core());
    cores.back()->Start([&](const absl::Status& status) { ready += status.ok() ? 1 : 0; });
  }
  EXPECT_TRUE(cluster.RunUntil([&] { return ready == kWorkers; }, absl::Minutes(1)));

  TableSpec spec = TableSpec::Dense("w", {64}, DType::kInt64);
  spec.consistency = consistency;
  std::shared_ptr<const worker::TableInfo> table;
  cores[0]->CreateTable(spec, absl::Minutes(1), [&](auto created) { table = *created; });
  EXPECT_TRUE(cluster.RunUntil([&] { return table != nullptr; }, absl::Minutes(1)));

  const auto arrays = std::make_shared<SteppingWorker::Arrays>(std::vector{table});
  std::vector<std::unique_ptr<SteppingWorker>> workers;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<SteppingWorker>(
        &cluster.world(), cores[i], kSteps, i == 0 ? kSlowStep : kFastStep,
        [](const absl::Status& status, int) { EXPECT_TRUE(status.ok()) << status; }));
    workers.back()->Run({table}, arrays);
  }
  EXPECT_TRUE(cluster.RunUntil(
      [&] {
        return std::all_of(workers.begin(), workers.end(), [](auto& w) { return w->over(); });
      },
      absl::Minutes(5)));

  Outcome outcome;
  for (std::uint32_t i = 0; i < kWorkers; ++i) {
    if (i > 0) outcome.fast_workers_waited += workers[i]->waited();
    outcome.max_staleness = std::max(outcome.max_staleness, cores[i]->stats().max_staleness);
    EXPECT_EQ(cores[i]->stats().staleness_violations, 0u);
  }
  return outcome;
}

TEST(StragglerTest, TheMoreLeewayTheLessTheOthersWait) {
  runtime::SetLogLevel(runtime::LogLevel::kOff);
  absl::Duration before = absl::InfiniteDuration();
  for (const std::uint64_t staleness : {0, 1, 3, 8}) {
    const Outcome outcome = RunWithStraggler(Consistency::Ssp(staleness));
    EXPECT_EQ(outcome.max_staleness, staleness);
    EXPECT_LT(outcome.fast_workers_waited, before) << "ssp:" << staleness;
    before = outcome.fast_workers_waited;
  }
  const Outcome asp = RunWithStraggler(Consistency::Asp());
  EXPECT_GT(asp.max_staleness, 8u);
  EXPECT_LT(asp.fast_workers_waited, before);
  runtime::SetLogLevel(runtime::LogLevel::kInfo);
}

}  // namespace
}  // namespace leeway::simulation
