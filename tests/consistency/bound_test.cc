// Tests the staleness bound on a whole cluster: it holds, and the worker's own check finds a
// breach.
#include <future>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/local_cluster.h"

namespace leeway::tests {
namespace {

constexpr int kSteps = 40;

// Worker 0 ends its first iteration only when worker 1 has run ahead as far as the bound allows:
// all its iterations, or until a pull is not answered.
struct Outcome {
  WorkerStats fast;
  absl::Status first_error;
  int steps_ahead = 0;
};

Outcome RunAhead(LocalCluster* cluster, Consistency consistency) {
  Outcome run;
  std::promise<void> ahead;
  std::future<void> is_ahead = ahead.get_future();
  const absl::Status connected = cluster->RunWorkers([&](Worker* worker) {
    TableSpec spec = TableSpec::Dense("w", {4});
    spec.consistency = consistency;
    auto table = worker->CreateTable(spec);
    ASSERT_TRUE(table.ok()) << table.status();
    std::vector<float> values(4);
    if (worker->rank() == 0) {
      is_ahead.wait();
      for (int i = 0; i < kSteps; ++i) ASSERT_TRUE(worker->Clock().ok());
      return;
    }
    Options options;
    options.timeout = absl::Seconds(2);  // the server answers after nine tenths of it
    for (int i = 0; i < kSteps && run.first_error.ok(); ++i) {
      run.first_error = worker->Wait(table->Pull(std::span<float>(values), options));
      if (run.first_error.ok()) run.steps_ahead = i;
      ASSERT_TRUE(worker->Clock().ok());
    }
    run.fast = worker->stats();
    ahead.set_value();
  });
  EXPECT_TRUE(connected.ok()) << connected;
  return run;
}

LocalCluster::Setup TwoWorkers() {
  LocalCluster::Setup setup;
  setup.workers = 2;
  return setup;
}

class BoundTest : public testing::TestWithParam<std::uint64_t> {};

TEST_P(BoundTest, AFastWorkerWaitsAtTheBoundAndIsToldForWhom) {
  auto cluster = LocalCluster::Start(TwoWorkers());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Outcome run = RunAhead(cluster->get(), Consistency::Ssp(GetParam()));
  EXPECT_EQ(run.steps_ahead, static_cast<int>(GetParam()));
  EXPECT_EQ(run.fast.max_staleness, GetParam());
  EXPECT_EQ(run.fast.staleness_violations, 0u);
  EXPECT_EQ(run.first_error.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(run.first_error.message(), testing::HasSubstr("worker 0 is at clock 0"));
}
INSTANTIATE_TEST_SUITE_P(Bounds, BoundTest, testing::Values(0, 1, 3, 8));

TEST(UnboundedTest, AspHoldsNobody) {
  auto cluster = LocalCluster::Start(TwoWorkers());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Outcome run = RunAhead(cluster->get(), Consistency::Asp());
  EXPECT_TRUE(run.first_error.ok()) << run.first_error;
  EXPECT_EQ(run.fast.max_staleness, static_cast<std::uint64_t>(kSteps - 1));
}

TEST(BoundCheckTest, AServerThatDoesNotHoldIsFoundOut) {
  LocalCluster::Setup setup = TwoWorkers();
  setup.servers_never_hold = true;
  auto cluster = LocalCluster::Start(setup);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Outcome run = RunAhead(cluster->get(), Consistency::Ssp(3));
  EXPECT_EQ(run.first_error.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(run.first_error.message(), testing::HasSubstr("staleness bound violated"));
  EXPECT_EQ(run.fast.staleness_violations, 1u);
  EXPECT_EQ(run.fast.max_staleness, 4u);
}

}  // namespace
}  // namespace leeway::tests
