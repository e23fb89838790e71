// Tests of what each workload promises, without a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "benchmarks/lab/workloads/registry.h"
#include "runtime/base/random.h"
#include "runtime/memory/sanitized.h"

namespace leeway::lab {
namespace {

constexpr std::uint64_t kSeed = 5;

// A step whose values are random, of the size that its tables have.
Step StepOf(const Workload& workload, const std::vector<std::uint32_t>& samples, double deviation) {
  const std::vector<TableSpec> tables = workload.tables();
  Step step;
  step.keys.resize(tables.size());
  workload.Choose(samples, kSeed, &step);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    const std::size_t size = tables[t].kind == TableKind::kDense
                                 ? tables[t].NumElements()
                                 : step.keys[t].size() * tables[t].row_width;
    std::vector<float>& values = step.values.emplace_back();
    for (std::size_t i = 0; i < size; ++i) {
      values.push_back(static_cast<float>(deviation * runtime::NormalAt(kSeed, t, i)));
    }
    step.gradients.emplace_back(size, 99.0f);  // to be overwritten
  }
  return step;
}

std::vector<std::uint32_t> FirstSamples(std::uint32_t count) {
  std::vector<std::uint32_t> samples(count);
  std::iota(samples.begin(), samples.end(), 0u);
  return samples;
}

TEST(Workloads, RefuseRunsThatDoNotSuitThem) {
  RunPlan plan;
  const auto quadratic = NewWorkload("quadratic", kSeed);
  ASSERT_TRUE(quadratic.ok()) << quadratic.status();
  plan.workload = "quadratic";
  plan.workers = 4;
  plan.batch = 1024;
  plan.local_steps = 4;
  EXPECT_TRUE(CheckPlan(plan, **quadratic).ok());
  plan.batch = 1025;
  EXPECT_THAT(CheckPlan(plan, **quadratic).message(),
              testing::HasSubstr("batch is 1025, of 4 workers 4100 samples a step"));
  const auto factorization = NewWorkload("factorization", kSeed);
  ASSERT_TRUE(factorization.ok()) << factorization.status();
  plan.workload = "factorization";
  plan.batch = 4;
  EXPECT_THAT(CheckPlan(plan, **factorization).message(), testing::HasSubstr("local_steps is 4"));
  plan.local_steps = 0;
  EXPECT_TRUE(CheckPlan(plan, **factorization).ok());
}

class WorkloadTest : public testing::TestWithParam<const char*> {};

TEST_P(WorkloadTest, GradientIsThatOfTheMeanLoss) {
  const auto workload = NewWorkload(GetParam(), kSeed);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const std::vector<std::uint32_t> samples = FirstSamples(6);
  Step step = StepOf(**workload, samples, 0.1);
  (*workload)->Gradient(samples, kSeed, &step);
  const std::vector<std::vector<float>> gradients = step.gradients;
  const auto loss = [&] { return (*workload)->Gradient(samples, kSeed, &step) / 6; };
  const double here = loss();
  for (std::size_t t = 0; t < step.values.size(); ++t) {
    ASSERT_EQ(gradients[t].size(), step.values[t].size());
    const std::size_t places = runtime::kSanitized ? 3 : 20;
    const std::size_t stride = step.values[t].size() / places + 1;
    for (std::size_t i = 0; i < step.values[t].size(); i += stride) {
      const float kept = step.values[t][i];
      constexpr float kNear = 2e-3f;
      step.values[t][i] = kept + kNear;
      const double above = loss();
      step.values[t][i] = kept - kNear;
      const double below = loss();
      step.values[t][i] = kept;
      // Where a rectified unit has its corner between, the slopes of the two sides differ.
      const double left = (here - below) / kNear, right = (above - here) / kNear;
      const double slack = 3e-3 + 0.03 * std::abs(left);
      EXPECT_GE(gradients[t][i], std::min(left, right) - slack) << t << "[" << i << "]";
      EXPECT_LE(gradients[t][i], std::max(left, right) + slack) << t << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Differentiable, WorkloadTest,
                         testing::Values("fashion-softmax", "fashion-mlp", "fashion-cnn",
                                         "factorization", "quadratic", "word-vectors",
                                         "characters"));

TEST(Workloads, WordnetLearnsItsSamples) {
  const auto workload = NewWorkload("wordnet", kSeed);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const std::vector<std::uint32_t> samples = FirstSamples(64);
  Step step = StepOf(**workload, samples, 0.1);
  for (const std::vector<std::uint64_t>& keys : step.keys) {
    EXPECT_TRUE(std::ranges::is_sorted(keys));
    EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
  }
  const double before = (*workload)->Gradient(samples, kSeed, &step);
  EXPECT_NEAR(before / 64, std::log(65.0), 0.2);  // nothing is known: 64 negatives and the true one
  double loss = before;
  for (int i = 0; i < 200; ++i) {
    for (std::size_t t = 0; t < step.values.size(); ++t) {
      for (std::size_t j = 0; j < step.values[t].size(); ++j) {
        step.values[t][j] -= 0.5f * step.gradients[t][j];
      }
    }
    loss = (*workload)->Gradient(samples, kSeed, &step);
  }
  EXPECT_LT(loss, before / 2);
}

TEST(Workloads, PoleIsBalancedLongerByItsGradient) {
  const auto workload = NewWorkload("pole", kSeed);
  ASSERT_TRUE(workload.ok()) << workload.status();
  const std::vector<std::uint32_t> samples = FirstSamples(16);
  Step step = StepOf(**workload, samples, 0.3);
  const Evaluation before = (*workload)->Evaluate(step.values, false);
  for (std::uint64_t i = 0; i < 150; ++i) {
    (*workload)->Gradient(samples, i, &step);
    for (std::size_t t = 0; t < step.values.size(); ++t) {
      for (std::size_t j = 0; j < step.values[t].size(); ++j) {
        step.values[t][j] -= 0.5f * step.gradients[t][j];
      }
    }
  }
  const Evaluation after = (*workload)->Evaluate(step.values, false);
  EXPECT_LT(before.score, 0.5);
  EXPECT_GT(after.score, 0.8);
  EXPECT_LT(after.loss, before.loss - 0.3);
}

TEST(Workloads, OneOfTheUsersMayBeNamed) {
  class Nothing final : public Workload {
   public:
    std::vector<TableSpec> tables() const override { return {TableSpec::Dense("w", {1})}; }
    std::size_t samples() const override { return 1; }
    std::string score_name() const override { return ""; }
    double Gradient(std::span<const std::uint32_t>, std::uint64_t, Step*) const override {
      return 0;
    }
    Evaluation Evaluate(const std::vector<std::vector<float>>&, bool) const override { return {}; }
  };
  const WorkloadMaker maker = [](std::uint64_t) { return std::make_unique<Nothing>(); };
  ASSERT_TRUE(AddWorkload("nothing", maker).ok());
  EXPECT_TRUE(NewWorkload("nothing", 1).ok());
  EXPECT_THAT(WorkloadNames(), testing::Contains("nothing"));
  EXPECT_EQ(AddWorkload("quadratic", maker).code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace leeway::lab
