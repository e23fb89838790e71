#include "benchmarks/lab/experiment/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "benchmarks/lab/experiment/batches.h"
#include "benchmarks/lab/experiment/straggler.h"
#include "benchmarks/lab/presets/presets.h"

namespace leeway::lab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Experiment> Parse(const std::string& text, const Overrides& overrides = {}) {
  return ParseExperiment("folder/mine.toml", text, overrides);
}

std::string ErrorOf(const std::string& text) {
  const auto parsed = Parse(text);
  EXPECT_FALSE(parsed.ok()) << text;
  return std::string(parsed.status().message());
}

TEST(Experiment, ListsMakeAGridWithSeedsFastest) {
  const auto parsed = Parse(
      "title = 'Mine'\ntarget = 0.5\nworkload = 'quadratic'\nseed = [1, 2]\n"
      "policy = ['bsp', 'ssp:3']\n[[variant]]\nworkers = [2, 4]\n[[variant]]\nworkers = 8\n"
      "batch = 5\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->name, "mine");
  EXPECT_EQ(parsed->title, "Mine");
  EXPECT_EQ(parsed->target, 0.5);
  ASSERT_EQ(parsed->runs.size(), 12u);
  EXPECT_EQ(parsed->runs[0].seed, 1u);
  EXPECT_EQ(parsed->runs[1].seed, 2u);
  EXPECT_EQ(parsed->runs[0].policy, parsed->runs[1].policy);
  std::set<std::string> labels;
  const auto varying = VaryingFields(parsed->runs);
  for (const RunPlan& plan : parsed->runs) labels.insert(LabelOf(plan, varying));
  EXPECT_EQ(labels.size(), 6u);
  EXPECT_TRUE(labels.contains("ssp:3, workers 8, batch 5"));
}

TEST(Experiment, TheCommandLineHasTheLastWord) {
  const auto parsed = Parse("workload = 'quadratic'\nepochs = 9\nseed = [4, 5, 6]\n",
                            {.engine = "real", .epochs = 0.5, .seeds = 2});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->runs.size(), 2u);
  EXPECT_EQ(parsed->runs[1].seed, 5u);
  EXPECT_EQ(parsed->runs[1].epochs, 0.5);
  EXPECT_EQ(parsed->runs[1].engine, "real");
}

TEST(Experiment, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(ErrorOf("workers = 4\nworker = 3\n"),
              HasSubstr("folder/mine.toml:2: worker: there is no such key: there are title"));
  EXPECT_THAT(ErrorOf("workers = 0\n"), HasSubstr("mine.toml:1: workers: must be a whole number"));
  EXPECT_THAT(ErrorOf("workers = 2.5\n"), HasSubstr("mine.toml:1: workers: must be a whole"));
  EXPECT_THAT(ErrorOf("\nworkers = [2, 'x']\n"), HasSubstr("mine.toml:2: workers: must be"));
  EXPECT_THAT(ErrorOf("policy = 3\n"), HasSubstr("mine.toml:1: policy: is no text"));
  EXPECT_THAT(ErrorOf("workers = []\n"), HasSubstr("mine.toml:1: workers: is an empty list"));
  EXPECT_THAT(ErrorOf("seed = 1\nstraggler = ['none', 'foo']\n"),
              HasSubstr("mine.toml:2: straggler: straggler 'foo': there is no such form"));
  EXPECT_THAT(ErrorOf("workers = 4\n[[variant]]\nstraggler = 'slow:1:2+slow:4:2'\n"),
              HasSubstr("mine.toml:3: straggler: straggler 'slow:1:2+slow:4:2': there is no worker "
                        "4 of 4"));
  EXPECT_THAT(ErrorOf("policy = 'backup:3/4'\nseed = 1\n"),
              HasSubstr("mine.toml:1: policy: policy is 'backup:3/4', but there are 8 workers"));
  EXPECT_THAT(ErrorOf("policy = 'softsync:9'\n"), HasSubstr("there are 8 workers"));
  EXPECT_THAT(ErrorOf("codec = 'none'\nerror_feedback = ['auto', 'both']\n"),
              HasSubstr("mine.toml:2: error_feedback: table 'w': codec none loses nothing"));
  EXPECT_THAT(ErrorOf("policy = 'bps'\n"), HasSubstr("bps"));
  EXPECT_THAT(ErrorOf("policy = 'asp,weight=1/tau'\nupdater = 'assign'\n"), HasSubstr("assign"));
  EXPECT_THAT(ErrorOf("workload = 'mnist'\n"), HasSubstr("workload is 'mnist': it is one of"));
  EXPECT_THAT(ErrorOf("straggler = 'slow:1'\n"), HasSubstr("there are none, slow:RANK:FACTOR"));
  EXPECT_THAT(ErrorOf("links = '1:5'\n"), HasSubstr("not RANK:UP_MBIT:DOWN_MBIT"));
  EXPECT_THAT(ErrorOf("links = '1:-5:2'\n"), HasSubstr("not RANK:UP_MBIT:DOWN_MBIT"));
  EXPECT_THAT(ErrorOf("links = '1:5:2+1:3:3'\n"), HasSubstr("worker 1 is there twice"));
  EXPECT_THAT(ErrorOf("links = '8:5:2'\n"), HasSubstr("there is no worker 8 of 8"));
  EXPECT_THAT(ErrorOf("policy = ['bsp', 'asp']\n[[paper]]\nsetting = 'ssp:1'\nsays = 'fast'\n"),
              HasSubstr("mine.toml:2: paper: there is no setting 'ssp:1': there are asp; bsp"));
  EXPECT_THAT(ErrorOf("[[paper]]\nsays = 'fast'\n"), HasSubstr("paper: has a `setting`"));
  EXPECT_THAT(ErrorOf("paper = 1\n"), HasSubstr("write [[paper]]"));
  EXPECT_THAT(ErrorOf("workers = [\n"), HasSubstr("mine.toml:"));
  EXPECT_THAT(ErrorOf("variant = 3\n"), HasSubstr("write [[variant]]"));
}

TEST(Experiment, ARunThatComesUpTwiceIsOne) {
  EXPECT_EQ(Parse("seed = [1, 1, 2]\n")->runs.size(), 2u);
  EXPECT_EQ(Parse("epochs = [1, 2]\n", {.engine = "", .epochs = 3})->runs.size(), 1u);
}

TEST(Experiment, RatesThatDifferInTheirEighthDigitAreTwoSettings) {
  const auto parsed = Parse("learning_rate = [0.12345671, 0.12345672]\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto varying = VaryingFields(parsed->runs);
  EXPECT_NE(LabelOf(parsed->runs[0], varying), LabelOf(parsed->runs[1], varying));
}

TEST(Experiment, AllPresetsAreExperiments) {
  for (const auto& [name, text] : Presets()) {
    const auto parsed = ParseExperiment(std::string(name) + ".toml", std::string(text), {});
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_GT(parsed->runs.size(), 1u) << name;
    EXPECT_FALSE(parsed->about.empty()) << name;
  }
}

TEST(Plan, IsTheSameAfterJson) {
  RunPlan plan;
  plan.policy = "ssp:7";
  plan.learning_rate = 0.1234567890123456;
  plan.rate_falls = true;
  plan.seed = 1'000'000'000'000'000'000;
  const auto again = PlanFromJson(nlohmann::json::parse(ToJson(plan).dump()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, plan);
  EXPECT_FALSE(PlanFromJson(nlohmann::json::parse("{\"workers\": 3}")).ok());
}

TEST(Straggler, FormsAndTheirMeans) {
  for (const char* text : {"none", "slow:2:4", "random:0.125:4", "exponential:0.5", "pareto:2.5",
                           "pause:0.5:0.05", "slow:2:2+exponential:1"}) {
    const auto straggler = Straggler::Parse(text);
    ASSERT_TRUE(straggler.ok()) << straggler.status();
    for (const std::uint32_t rank : {1u, 2u}) {
      double now = 0;
      constexpr int kSteps = 20'000;
      for (int step = 0; step < kSteps; ++step) {
        const double took = straggler->StepSeconds(7, rank, step, now, 0.01);
        EXPECT_EQ(took, straggler->StepSeconds(7, rank, step, now, 0.01));
        EXPECT_GE(took, 0.01 * 0.999);
        now += took;
      }
      EXPECT_NEAR(now / kSteps / 0.01, straggler->MeanFactor(rank),
                  0.05 * straggler->MeanFactor(rank))
          << text << " of worker " << rank;
    }
  }
}

TEST(Straggler, BadFormsAreRefused) {
  for (const char* text :
       {"", "slow", "slow:1", "slow:x:2", "slow:0.5:2", "slow:1:0.5", "random:2:4", "pareto:1",
        "pause:1:2", "exponential:-1", "exponential:nan", "slow:1:2+", "slow:1:1e9"}) {
    EXPECT_FALSE(Straggler::Parse(text).ok()) << text;
  }
}

TEST(Batches, AnEpochGoesThroughAllSamplesOnce) {
  Batches batches(1000, {3, 7, 10}, /*seed=*/5);
  EXPECT_EQ(batches.steps_per_epoch(), 50u);
  for (const std::uint64_t epoch : {0u, 1u}) {
    std::set<std::uint32_t> seen;
    for (std::uint64_t step = 0; step < 50; ++step) {
      for (std::uint32_t worker = 0; worker < 3; ++worker) {
        for (const std::uint32_t sample : batches.Take(epoch * 50 + step, worker)) {
          EXPECT_TRUE(seen.insert(sample).second);
        }
      }
    }
    EXPECT_EQ(seen.size(), 1000u);
  }
  EXPECT_NE(batches.Take(0, 0), batches.Take(50, 0));
  EXPECT_EQ(batches.Take(3, 1), Batches(1000, {3, 7, 10}, 5).Take(3, 1));
  EXPECT_NE(batches.Take(3, 1), Batches(1000, {3, 7, 10}, 6).Take(3, 1));
}

TEST(Batches, SizesFollowSpeedsAndKeepTheirSum) {
  EXPECT_THAT(BalancedSizes(32, {1, 4, 4, 4}), ElementsAre(10, 40, 39, 39));
  EXPECT_THAT(BalancedSizes(1, {1, 1000}), ElementsAre(1, 1));
  EXPECT_THAT(BalancedSizes(8, {3, 3}), ElementsAre(8, 8));
  const double infinite = std::numeric_limits<double>::infinity();  // of steps without length
  EXPECT_THAT(BalancedSizes(8, {infinite, infinite}), ElementsAre(8, 8));
  const std::vector<std::uint32_t> sizes = BalancedSizes(5, {1e-9, 7, 3, 0.1});
  EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), 0u), 20u);
  EXPECT_EQ(sizes[0], 1u);
}

}  // namespace
}  // namespace leeway::lab
