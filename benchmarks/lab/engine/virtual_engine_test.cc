#include "benchmarks/lab/engine/virtual_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "benchmarks/lab/workloads/registry.h"
#include "runtime/memory/sanitized.h"

namespace leeway::lab {
namespace {

RunPlan PlanOf(const char* policy) {
  RunPlan plan;
  plan.workload = "quadratic";
  plan.policy = policy;
  plan.workers = 4;
  plan.step_ms = 10;
  plan.batch = 16;
  plan.epochs = 4;
  plan.points = 5;
  plan.straggler = "exponential:1";
  return plan;
}

RunResult ResultFor(const RunPlan& plan) {
  const auto workload = NewWorkload(plan.workload, plan.seed);
  EXPECT_TRUE(workload.ok()) << workload.status();
  auto result = RunVirtual(plan, **workload);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : RunResult{};
}

TEST(VirtualEngine, TheSamePlanGivesTheSameResultToTheBit) {
  if (runtime::kSanitized) GTEST_SKIP() << "determinism is tested without sanitizers";
  for (const char* policy : {"bsp", "ssp:2", "asp", "backup:3/4,drop", "softsync:2,weight=1/tau"}) {
    const RunPlan plan = PlanOf(policy);
    const std::string first = ToJson(ResultFor(plan)).dump();
    EXPECT_EQ(first, ToJson(ResultFor(plan)).dump()) << policy;
    RunPlan other = plan;
    other.seed = 2;
    EXPECT_NE(first, ToJson(ResultFor(other)).dump());
  }
}

// In BSP four workers with batches of 16 take the steps that one worker with a batch of 64 takes.
TEST(VirtualEngine, BspIsOneProcessWithABatchOfAll) {
  RunPlan plan = PlanOf("bsp");
  const RunResult together = ResultFor(plan);
  plan.workers = 1;
  plan.batch = 64;
  const RunResult alone = ResultFor(plan);
  EXPECT_NEAR(together.last.loss, alone.last.loss, 1e-4 * alone.last.loss);
  EXPECT_EQ(together.clock_staleness.size(), 1u);
}

TEST(VirtualEngine, TrainingComesNearTheOptimum) {
  if (runtime::kSanitized) GTEST_SKIP() << "the other tests here run the same code";
  for (const char* policy : {"bsp", "ssp:2", "asp", "fedbuff:4", "softsync:2", "dssp:1-4"}) {
    RunPlan plan = PlanOf(policy);
    plan.epochs = 40;
    plan.rate_falls = true;
    const RunResult result = ResultFor(plan);
    ASSERT_FALSE(result.points.empty());
    EXPECT_GT(result.points.front().loss, 10) << policy;
    EXPECT_LT(result.last.loss, 0.3) << policy;
    EXPECT_EQ(result.violations, 0u) << policy;
  }
}

TEST(VirtualEngine, StalenessKeepsItsBound) {
  EXPECT_EQ(MaxOf(ResultFor(PlanOf("bsp")).clock_staleness), 0u);
  EXPECT_LE(MaxOf(ResultFor(PlanOf("ssp:3")).clock_staleness), 3u);
  RunPlan slow = PlanOf("asp");
  slow.straggler = "slow:0:4";
  EXPECT_GT(MaxOf(ResultFor(slow).clock_staleness), 10u);
}

// A step of four workers whose steps take 10 ms or, one in two, 20 ms.
TEST(VirtualEngine, WaitingIsThatForTheSlowest) {
  RunPlan plan = PlanOf("bsp");
  plan.straggler = "slow:0:2";
  plan.link_us = 0;
  const RunResult result = ResultFor(plan);
  ASSERT_EQ(result.workers.size(), 4u);
  EXPECT_NEAR(result.workers[0].wait_s, 0, 1e-6);
  EXPECT_NEAR(result.workers[1].wait_s, result.workers[1].compute_s, 0.03);
  EXPECT_NEAR(result.workers[0].compute_s, 0.02 * result.workers[0].steps, 1e-6);
}

// Not when the evaluator next looks, which may be a tenth of a second later.
TEST(VirtualEngine, ARunEndsWithItsLastPush) {
  RunPlan plan = PlanOf("asp");
  plan.straggler = "slow:0:3";
  plan.link_us = 0;
  plan.epochs = 1;
  const RunResult result = ResultFor(plan);
  double last_s = 0;
  for (const WorkerTime& worker : result.workers) last_s = std::max(last_s, worker.last_s);
  EXPECT_NEAR(result.last.seconds, last_s, 1e-4);
  for (const Point& point : result.points) EXPECT_LE(point.seconds, result.last.seconds);
}

// Workers that have taken their steps hold nobody back.
TEST(VirtualEngine, EndsWhicheverWorkerIsFirst) {
  for (const char* policy : {"ssp:1", "dssp:1-8", "psp:1/2", "ssp:0"}) {
    RunPlan plan = PlanOf(policy);
    plan.straggler = "pareto:1.5";
    for (plan.seed = 1; plan.seed <= 4; ++plan.seed) {
      EXPECT_LT(ResultFor(plan).last.seconds, 600) << policy;
    }
  }
}

// Zhang et al., IJCAI 2016: the mean staleness of n-softsync is n, and hardly ever above 2n.
TEST(VirtualEngine, SoftsyncHasTheStalenessOfItsPaper) {
  if (runtime::kSanitized) GTEST_SKIP() << "the other tests here run the same code";
  for (const int n : {1, 5, 15, 30}) {
    RunPlan plan = PlanOf("");
    plan.policy = "softsync:" + std::to_string(n) + ",weight=table:1";
    plan.workers = 30;
    plan.servers = 1;
    plan.batch = 8;
    plan.epochs = 40;
    plan.learning_rate = 0.001;
    plan.straggler = "exponential:0.2";
    const RunResult result = ResultFor(plan);
    EXPECT_NEAR(MeanOf(result.update_staleness), n, 0.2 * n);
    double beyond = 0, all = 0;
    for (const auto& [tau, count] : result.update_staleness) {
      all += static_cast<double>(count);
      if (tau > 2u * static_cast<unsigned>(n)) beyond += static_cast<double>(count);
    }
    EXPECT_LT(beyond / all, 1e-3) << n;
  }
}

TEST(VirtualEngine, ASlowLinkCostsTime) {
  RunPlan plan = PlanOf("bsp");
  plan.straggler = "none";
  const double fast_s = ResultFor(plan).last.seconds;
  plan.link_mbit = 1;
  const RunResult slow = ResultFor(plan);
  EXPECT_GT(slow.last.seconds, 1.3 * fast_s);
  EXPECT_GT(slow.workers[1].communicate_s, 0.1 * slow.last.seconds);
}

TEST(VirtualEngine, SparseTablesAndLocalSteps) {
  RunPlan plan = PlanOf("asp");
  plan.workload = "factorization";
  plan.learning_rate = 0.5;
  plan.epochs = 2;
  plan.batch = 64;
  const RunResult rows = ResultFor(plan);
  EXPECT_LT(rows.last.loss, 0.9 * rows.points.front().loss);

  plan = PlanOf("bsp");
  plan.learning_rate = 1;
  const double bytes = ResultFor(plan).last.bytes;
  plan.local_steps = 16;
  plan.inner_rate = 0.1;
  const RunResult local = ResultFor(plan);
  EXPECT_LT(local.last.bytes, bytes / 8);
  EXPECT_LT(local.last.loss, 0.2 * local.points.front().loss);
}

// Four workers exchange over links on which that takes longer than a step: workers communicate, and
// an exchange lies before each second step of the timeline.
TEST(VirtualEngine, ExchangesOfLocalStepsTakeTime) {
  RunPlan plan = PlanOf("bsp");
  plan.straggler = "none";
  plan.link_mbit = 1;
  plan.epochs = 1;
  plan.local_steps = 2;
  const RunResult result = ResultFor(plan);
  for (const WorkerTime& worker : result.workers)
    EXPECT_GT(worker.communicate_s, worker.wait_s / 4);
  const std::vector<TimelineStep>& steps = result.timeline[0];
  ASSERT_GT(steps.size(), 4u);
  EXPECT_EQ(steps[1].pull_s, steps[1].compute_s);
  EXPECT_GT(steps[2].compute_s - steps[2].pull_s, 0.01);
}

TEST(VirtualEngine, BalancedBatchesEndTogether) {
  RunPlan plan = PlanOf("bsp");
  plan.straggler = "slow:0:4";
  const RunResult even = ResultFor(plan);
  plan.balance = "speed";
  const RunResult balanced = ResultFor(plan);
  EXPECT_LT(balanced.last.seconds, 0.5 * even.last.seconds);
}

}  // namespace
}  // namespace leeway::lab
