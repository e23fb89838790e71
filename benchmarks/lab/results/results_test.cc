#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "benchmarks/lab/results/comparison.h"
#include "benchmarks/lab/results/csv.h"
#include "benchmarks/lab/results/findings.h"
#include "benchmarks/lab/results/folder.h"
#include "benchmarks/lab/results/report.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::lab {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

RunResult ResultOf(const char* policy, std::uint64_t seed, double second_s) {
  RunResult result;
  result.plan.policy = policy;
  result.plan.seed = seed;
  result.score_name = "accuracy";
  result.points = {{.seconds = 0, .loss = 2, .score = 0.1},
                   {.seconds = second_s, .epochs = 1, .bytes = 5e6, .loss = 1, .score = 0.6}};
  result.last = {.seconds = 2 * second_s, .epochs = 2, .bytes = 1e7, .loss = 0.5, .score = 0.9};
  result.workers = {{.steps = 10, .compute_s = 3, .communicate_s = 1, .wait_s = 4}};
  result.timeline = {{{.pull_s = 0, .compute_s = 1, .push_s = 2}}};
  result.clock_staleness = {{0, 3}, {2, 1}};
  return result;
}

Experiment ExperimentOf(const std::vector<RunResult>& results) {
  Experiment experiment;
  experiment.title = "Title with </script> in it";
  experiment.target = 0.5;
  for (const RunResult& result : results) experiment.runs.push_back(result.plan);
  return experiment;
}

TEST(RunResult, IsTheSameAfterJson) {
  RunResult result = ResultOf("ssp:3", 4, 1.5);
  result.last.score = std::nan("");
  result.last.others = {{"Hits@10", 0.75}};
  result.update_staleness = {{7, 9}};
  const std::string text = ToJson(result).dump();
  const auto again = ResultFromJson(nlohmann::json::parse(text));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToJson(*again).dump(), text);
  EXPECT_FALSE(ResultFromJson(nlohmann::json::parse("{}")).ok());
}

TEST(RunResult, SecondsToATarget) {
  const RunResult result = ResultOf("bsp", 1, 3);
  EXPECT_EQ(SecondsTo(result, 0.5), 3);
  EXPECT_EQ(SecondsTo(result, 0.8), 6);
  EXPECT_LT(SecondsTo(result, 0.95), 0);
}

TEST(Findings, CompareSettingsOverSeeds) {
  const std::vector<RunResult> results = {ResultOf("bsp", 1, 4), ResultOf("bsp", 2, 6),
                                          ResultOf("asp", 1, 2), ResultOf("asp", 2, 2)};
  const Findings findings = FindingsOf(ExperimentOf(results), results);
  ASSERT_EQ(findings.settings.size(), 2u);
  EXPECT_EQ(findings.settings[1].label, "asp");
  EXPECT_EQ(findings.settings[0].seconds_to_target.mean, 5);
  EXPECT_NEAR(findings.settings[0].seconds_to_target.deviation, std::sqrt(2), 1e-12);
  EXPECT_EQ(findings.settings[1].speedup.mean, 2.5);
  EXPECT_EQ(findings.settings[1].waiting, 0.5);
  EXPECT_EQ(findings.settings[1].clock_staleness, 0.5);
  EXPECT_EQ(findings.settings[1].clock_staleness_max, 2u);
  EXPECT_THAT(findings.sentences[1], HasSubstr("bsp takes 2.5"));
  EXPECT_THAT(findings.sentences[1], Not(HasSubstr("Elsewhere")));
  Experiment experiment = ExperimentOf(results);
  experiment.paper["asp"] = "3 times as fast";
  EXPECT_THAT(FindingsOf(experiment, results).sentences[1], HasSubstr("Elsewhere: 3 times"));
  EXPECT_THAT(findings.limits, Contains(HasSubstr("fewer than three seeds")));
}

// Epochs to the target are 1 + staleness / 2, but for the runs of Adam: 1 + 2 · staleness.
TEST(Findings, TellHowEpochsGrowWithStaleness) {
  std::vector<RunResult> results;
  for (const char* updater : {"sgd", "adam"}) {
    for (const std::uint64_t bound : {1u, 2u, 4u}) {
      RunResult run = ResultOf(absl::StrCat("ssp:", bound).c_str(), 1, 1);
      run.plan.updater = updater;
      run.plan.learning_rate = run.plan.updater == "adam" ? 0.001 : 0.1;
      run.clock_staleness = {{bound, 7}};
      const double slope = run.plan.updater == "adam" ? 2 : 0.5;
      run.points.back().epochs = 1 + slope * static_cast<double>(bound);
      results.push_back(run);
    }
  }
  results.push_back(ResultOf("softsync:4", 1, 1));  // is not bounded by clocks
  Experiment experiment = ExperimentOf(results);
  experiment.paper["adam"] = "twice as much";
  const Findings findings = FindingsOf(experiment, results);
  ASSERT_EQ(findings.slopes.size(), 2u);
  EXPECT_EQ(findings.slopes[0].label, "sgd");
  EXPECT_NEAR(findings.slopes[0].slope, 0.5, 1e-9);
  EXPECT_NEAR(findings.slopes[0].epochs, 1, 1e-9);
  EXPECT_NEAR(findings.slopes[1].slope, 2, 1e-9);
  EXPECT_NEAR(findings.slopes[1].error, 0, 1e-9);
  EXPECT_EQ(findings.sentences.back(),
            "adam: a clock of mean staleness adds 200.0 ± 0.0 % to the 1 epochs to accuracy 0.5 "
            "(3 runs). Elsewhere: twice as much.");
}

TEST(Findings, SayNothingOfATargetThatTheFirstPointHasReached) {
  std::vector<RunResult> results;
  for (const char* policy : {"bsp", "ssp:1", "ssp:2"}) {
    results.push_back(ResultOf(policy, 1, 4));
    results.back().points[0].score = 0.7;
    results.back().clock_staleness = {{results.size(), 1}};
  }
  const Findings findings = FindingsOf(ExperimentOf(results), results);
  EXPECT_TRUE(findings.slopes.empty());
  for (const std::string& sentence : findings.sentences) {
    EXPECT_THAT(sentence, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("times as long"))));
  }
}

// The stalest run does not come to the target: a line through the others tells too little.
TEST(Findings, SayWhichRunsASlopeLeavesOut) {
  std::vector<RunResult> results;
  for (const std::uint64_t bound : {1u, 2u, 4u, 8u}) {
    results.push_back(ResultOf(absl::StrCat("ssp:", bound).c_str(), 1, 1));
    results.back().clock_staleness = {{bound, 7}};
    results.back().points[1].epochs = 1 + static_cast<double>(bound);
  }
  results[3].last.score = results[3].points[1].score = 0.1;
  const Findings findings = FindingsOf(ExperimentOf(results), results);
  EXPECT_THAT(findings.sentences.back(), HasSubstr("(3 of 4 runs; the others did not come to it"));
}

TEST(Findings, NameTheScoreOfEachWorkload) {
  std::vector<RunResult> results = {ResultOf("bsp", 1, 4), ResultOf("asp", 1, 4)};
  results[1].score_name = "MRR";
  results[0].last.score = std::nan("");
  const Findings findings = FindingsOf(ExperimentOf(results), results);
  EXPECT_THAT(findings.sentences[0], HasSubstr("in the end accuracy not finite;"));
  EXPECT_THAT(findings.sentences[1], HasSubstr("in the end MRR 0.9;"));
  EXPECT_THAT(findings.limits, Contains(HasSubstr("(MRR, accuracy) cannot be compared")));
  EXPECT_THAT(ReportOf(ExperimentOf(results), results), HasSubstr("\"score_name\":\"score\""));
}

TEST(Findings, SayWhichTimeIsWhich) {
  std::vector<RunResult> results = {ResultOf("bsp", 1, 4), ResultOf("bsp", 1, 4)};
  EXPECT_THAT(FindingsOf(ExperimentOf(results), results).limits,
              Contains(HasSubstr("Time is virtual")));
  results[1].plan.engine = "real";
  results[1].update_staleness = {{64, 1}};
  EXPECT_THAT(FindingsOf(ExperimentOf(results), results).limits,
              IsSupersetOf({HasSubstr("Of virtual runs, time is virtual"),
                            HasSubstr("Of real runs, time is that of this machine"),
                            HasSubstr("64 updates stale or more together")}));
}

TEST(Csv, HasARowARun) {
  const std::vector<RunResult> results = {ResultOf("bsp", 1, 4), ResultOf("backup:3/4,drop", 2, 6)};
  const std::string csv = CsvOf(ExperimentOf(results), results);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  EXPECT_THAT(csv, AllOf(HasSubstr("\"backup:3/4,drop\""), HasSubstr("seconds_to_target")));
}

TEST(Results, HaveOtherMeasuresOfAWorkload) {
  std::vector<RunResult> results = {ResultOf("asp", 1, 4), ResultOf("bsp", 1, 4)};
  results[1].last.others = {{"Hits@10", 0.75}};
  const std::string csv = CsvOf(ExperimentOf(results), results);
  EXPECT_THAT(csv, AllOf(HasSubstr("staleness_violations,Hits@10\r\n"), HasSubstr(",0,\r\n"),
                         HasSubstr(",0,0.75\r\n")));
  const Findings findings = FindingsOf(ExperimentOf(results), results);
  EXPECT_TRUE(findings.settings[0].others.empty());
  EXPECT_EQ(findings.settings[1].others.at("Hits@10").mean, 0.75);
  EXPECT_THAT(ReportOf(ExperimentOf(results), results), HasSubstr("\"others\":{\"Hits@10\":"));
}

TEST(Report, IsOnePageWithAllOfIt) {
  const std::vector<RunResult> results = {ResultOf("bsp", 1, 4), ResultOf("asp", 1, 2)};
  const std::string page = ReportOf(ExperimentOf(results), results);
  EXPECT_THAT(page, AllOf(HasSubstr("Chart.js v"), HasSubstr("\"label\":\"asp\""),
                          HasSubstr("Title with \\u003c/script>")));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("/*DATA*/")), Not(HasSubstr("/*CHART_JS*/")),
                          Not(HasSubstr("src=\"http"))));
}

TEST(ResultFolder, KeepsFinishedRuns) {
  const runtime::TempFolder temporary;
  const auto folder = ResultFolder::Make(temporary.path() + "/out");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const RunResult result = ResultOf("bsp", 1, 4);
  EXPECT_FALSE(folder->Load(result.plan).has_value());
  ASSERT_TRUE(folder->Save(result).ok());
  const auto loaded = folder->Load(result.plan);
  ASSERT_TRUE(loaded.has_value());
  EXPECT_EQ(ToJson(*loaded).dump(), ToJson(result).dump());
  RunPlan other = result.plan;
  other.epochs = 7;
  EXPECT_FALSE(folder->Load(other).has_value());
  // One that was cut off in the middle is run again.
  ASSERT_TRUE(WriteFile(folder->FileOf(result.plan), "{\"plan\": {").ok());
  EXPECT_FALSE(folder->Load(result.plan).has_value());
}

TEST(ResultFolder, KeepsTheRunsThatTheCommandLineHasChosen) {
  const runtime::TempFolder temporary;
  const auto folder = ResultFolder::Make(temporary.path() + "/out");
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(folder->LoadExperiment().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(folder->path()).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string text = "policy = [\"bsp\", \"asp\"]\nseed = [1, 2]\n";
  const auto experiment = ParseExperiment("one.toml", text, {.engine = "real", .seeds = 1});
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  ASSERT_TRUE(folder->KeepExperiment(*experiment, text).ok());
  const auto loaded = folder->LoadExperiment();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->title, "one");
  EXPECT_EQ(loaded->runs, experiment->runs);
  ASSERT_TRUE(WriteFile(folder->path() + "/plans.json", "[{").ok());
  EXPECT_EQ(folder->LoadExperiment().status().code(), absl::StatusCode::kDataLoss);
}

TEST(ResultFolder, IsOfOneRunCommandAtATime) {
  const runtime::TempFolder temporary;
  const auto folder = ResultFolder::Make(temporary.path() + "/out");
  ASSERT_TRUE(folder.ok()) << folder.status();
  {
    const auto lock = folder->Lock();
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_THAT(folder->Lock().status().message(), HasSubstr("another `run` is at work there"));
  }
  EXPECT_TRUE(folder->Lock().ok());
}

TEST(Comparison, SaysWhatIsNotTheSame) {
  const auto compared = [](const char* workload, double target, double second_s) {
    const std::vector<RunResult> results = {ResultOf("bsp", 1, second_s)};
    Experiment experiment = ExperimentOf(results);
    experiment.target = target;
    return Compared{.name = workload,
                    .has_target = true,
                    .has_score = true,
                    .target = target,
                    .workload = workload,
                    .findings = FindingsOf(experiment, results)};
  };
  const auto text = ComparisonOf({compared("pole", 0.5, 1), compared("characters", 0.95, 1)});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text,
              AllOf(HasSubstr("characters trains characters, pole pole"),
                    HasSubstr("characters has another target than pole"), Not(HasSubstr("order"))));
}

TEST(Comparison, SetsSettingsBesideEachOther) {
  const auto compared = [](const char* name, const std::vector<RunResult>& results) {
    return Compared{.name = name,
                    .has_target = true,
                    .has_score = true,
                    .findings = FindingsOf(ExperimentOf(results), results)};
  };
  const Compared first = compared("first", {ResultOf("bsp", 1, 4), ResultOf("asp", 1, 2)});
  const Compared same = compared("same", {ResultOf("asp", 1, 2.2), ResultOf("bsp", 1, 4)});
  const auto text = ComparisonOf({first, same});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, AllOf(HasSubstr("s to target (same)"), HasSubstr("1.1 times as long"),
                           HasSubstr("(asp)"), HasSubstr("the same order")));
  const Compared other = compared("other", {ResultOf("asp", 1, 5), ResultOf("bsp", 1, 4)});
  EXPECT_THAT(*ComparisonOf({first, other}), HasSubstr("another order"));
  EXPECT_FALSE(ComparisonOf({first, compared("none", {ResultOf("ssp:1", 1, 4)})}).ok());
}

}  // namespace
}  // namespace leeway::lab
