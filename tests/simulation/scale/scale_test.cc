// Tests the growth of the cost of a cluster with its size, at a size that takes seconds.
#include <gtest/gtest.h>

#include "runtime/log/log.h"
#include "runtime/memory/sanitized.h"
#include "tests/simulation/scale/scale_run.h"

namespace leeway::simulation {
namespace {

class ScaleTest : public testing::Test {
 protected:
  void SetUp() override { runtime::SetLogLevel(runtime::LogLevel::kOff); }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }

  static ScaleFigures Run(const ScalePlan& plan) {
    const absl::StatusOr<ScaleFigures> figures = RunScale(plan);
    EXPECT_TRUE(figures.ok()) << figures.status();
    return figures.ok() ? *figures : ScaleFigures();
  }
  static ScalePlan Short() {
    ScalePlan plan;
    plan.steps = 1;
    plan.measured = absl::ZeroDuration();
    return plan;
  }
  static double PerNode(const ScalePlan& plan, std::uint64_t count) {
    return static_cast<double>(count) / plan.nodes();
  }
};

// Computed by hand: 30 gradients of 16,000 bytes at 200 MB/s are 2.4 ms, twice; the model, 80,320
// bytes, is less.
TEST_F(ScaleTest, TheIdealIsWhatTheFullestCardTakes) {
  ScalePlan plan;
  plan.block_bytes = 16'000;
  plan.compute = absl::Milliseconds(20);
  plan.delay = absl::Microseconds(50);
  EXPECT_EQ(IdealStep(plan), absl::Microseconds(20'000 + 2 * (2400 + 50)));
  plan.workers = 2;  // now the model is more than a server receives: 80,260 bytes, 401.3 us
  EXPECT_EQ(IdealStep(plan), absl::Nanoseconds(20'000'000 + 2 * (401'300 + 50'000)));
}

TEST_F(ScaleTest, AStepIsNearTheIdealAndTheSchedulerHasLittleToDo) {
  if (runtime::kSanitized) GTEST_SKIP() << "the other tests here run the same code";
  ScalePlan plan;                        // 30 workers, 5 servers
  plan.compute = absl::Milliseconds(1);  // so that the network limits the step
  const ScaleFigures figures = Run(plan);
  EXPECT_GE(StepVsIdeal(figures), 1.0);
  EXPECT_LE(StepVsIdeal(figures), 1.2);
  EXPECT_LT(SchedulerMessagesPerNodeSecond(plan, figures), 5.0);
}

// Ten messages a node: Join, Welcome, the map and its MapAck, the tables.
TEST_F(ScaleTest, JoiningCostsTheSchedulerAsMuchForEachNodeWhereThereAreMany) {
  const auto messages_per_node = [](std::uint32_t workers, std::uint32_t servers) {
    ScalePlan plan = Short();
    plan.workers = workers, plan.servers = servers;
    return PerNode(plan, Run(plan).joining.messages);
  };
  EXPECT_LE(messages_per_node(60, 12), 1.1 * messages_per_node(10, 2));
}

// A map for each worker that leaves, to all that are left, and its acknowledgement, would be 4,000
// messages, and as many NodeDowns.
TEST_F(ScaleTest, WorkersThatLeaveOneAfterTheOtherAreNotAMapEach) {
  ScalePlan plan = Short();
  plan.workers = 60, plan.servers = 12;
  plan.leave_within = absl::Milliseconds(200);  // there may be a map every 72 ms
  EXPECT_LE(Run(plan).leaving.messages, 60 * 2 + 12 * 4 + 4 * 2 * 72u);
}

TEST_F(ScaleTest, TheSamePlanGivesTheSameFigures) {
  ScalePlan plan;
  plan.workers = 6, plan.servers = 2, plan.steps = 3;
  plan.measured = absl::ZeroDuration();
  const ScaleFigures first = Run(plan), second = Run(plan);
  EXPECT_EQ(first.step, second.step);
  EXPECT_EQ(first.steady.messages, second.steady.messages);
  EXPECT_EQ(first.joining.bytes, second.joining.bytes);
  EXPECT_EQ(first.leaving.bytes, second.leaving.bytes);
}

}  // namespace
}  // namespace leeway::simulation
