// That Leeway goes on growing as it should, at a size that takes seconds.
#include <gtest/gtest.h>

#include "runtime/log.h"
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
  static double PerNode(const ScalePlan& plan, std::uint64_t count) {
    return static_cast<double>(count) / plan.nodes();
  }
};

// Worked out by hand: 30 gradients of 16,000 bytes at 200 MB/s are 2.4 ms, twice; the model, 80,320
// bytes, is less.
TEST_F(ScaleTest, TheIdealIsWhatTheFullestCardTakes) {
  ScalePlan plan;
  plan.block_bytes = 16'000;
  plan.compute = absl::Milliseconds(20);
  plan.delay = absl::Microseconds(50);
  EXPECT_EQ(IdealStep(plan), absl::Microseconds(20'000 + 2 * (2400 + 50)));
  plan.workers = 2;  // now the model is more than what a server hears: 80,260 bytes, 401.3 us
  EXPECT_EQ(IdealStep(plan), absl::Nanoseconds(20'000'000 + 2 * (401'300 + 50'000)));
}

TEST_F(ScaleTest, AStepIsNearTheIdealAndTheSchedulerHasLittleToDo) {
  ScalePlan plan;  // 30 workers, 5 servers
  const ScaleFigures figures = Run(plan);
  EXPECT_GE(StepVsIdeal(figures), 1.0);
  EXPECT_LE(StepVsIdeal(figures), 1.2);
  EXPECT_LT(SchedulerMessagesPerNodeSecond(plan, figures), 5.0);
}

TEST_F(ScaleTest, JoiningAndLeavingCostTheSchedulerNoMoreForEachNodeWhereThereAreMany) {
  ScalePlan few, many;
  few.workers = 10, few.servers = 2;
  many.workers = 60, many.servers = 12;
  few.steps = many.steps = 1;
  const ScaleFigures small = Run(few), large = Run(many);
  EXPECT_LE(PerNode(many, large.joining.messages), 1.2 * PerNode(few, small.joining.messages));
  EXPECT_LE(PerNode(many, large.leaving.messages), 1.2 * PerNode(few, small.leaving.messages));
}

TEST_F(ScaleTest, TheSamePlanGivesTheSameFigures) {
  ScalePlan plan;
  plan.workers = 6, plan.servers = 2, plan.steps = 3;
  const ScaleFigures first = Run(plan), second = Run(plan);
  EXPECT_EQ(first.step, second.step);
  EXPECT_EQ(first.steady.messages, second.steady.messages);
  EXPECT_EQ(first.joining.bytes, second.joining.bytes);
  EXPECT_EQ(first.leaving.bytes, second.leaving.bytes);
}

}  // namespace
}  // namespace leeway::simulation
