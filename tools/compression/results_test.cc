#include "tools/compression/results.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const Variant kOnebit{"onebit", ErrorFeedback::kBoth};

TrainFacts Run(double accuracy, double bytes_per_step, double seconds) {
  TrainFacts run;
  run.test_accuracy = accuracy;
  run.bytes_per_step = bytes_per_step;
  run.wall_time_s = seconds;
  return run;
}

std::vector<CompressionResult> SomeResults() {
  const CompressionResult none = Summarize("bsp", {"none"}, {Run(0.85, 3.2e6, 2)}, nullptr);
  return {none, Summarize("bsp", kOnebit, {Run(0.82, 1e5, 3), Run(0.84, 1e5, 5)}, &none)};
}

TEST(CompressionResultsTest, MeansDeviationAndRatio) {
  const std::vector<CompressionResult> results = SomeResults();
  EXPECT_EQ(results[0].accuracy_sd, 0);  // one seed
  EXPECT_EQ(results[0].ratio, 1);
  EXPECT_EQ(results[1].seeds, 2u);
  EXPECT_DOUBLE_EQ(results[1].accuracy_mean, 0.83);
  EXPECT_NEAR(results[1].accuracy_sd, 0.0141421, 1e-6);  // divided by n − 1
  EXPECT_DOUBLE_EQ(results[1].ratio, 32);
  EXPECT_DOUBLE_EQ(results[1].seconds_mean, 4);
}

TEST(CompressionResultsTest, ATable) {
  EXPECT_THAT(
      CompressionTable(SomeResults()),
      StartsWith(
          "mode  codec   error feedback   test accuracy  points  bytes a step  ratio   time\n"
          "bsp   none                    85.00 ± 0.00 %             3200.0 kB    1.0  2.0 s\n"
          "bsp   onebit  both            83.00 ± 1.41 %   -2.00      100.0 kB   32.0  4.0 s\n"));
  EXPECT_THAT(CompressionTable(SomeResults()), HasSubstr("pulls\ntravel uncompressed"));
  EXPECT_EQ(CompressionLine(SomeResults()[1]),
            "bsp onebit, error feedback both: test accuracy 83.00 ± 1.41 %, 100.0 kB a step, ratio "
            "32.0, 4.0 s");
}

TEST(CompressionResultsTest, AListInJson) {
  const auto json = nlohmann::json::parse(CompressionJson(SomeResults()));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["codec"], "none");
  EXPECT_EQ(json[0]["error_feedback"], "off");
  EXPECT_EQ(json[1]["error_feedback"], "both");
  EXPECT_EQ(json[1]["bytes_per_step"], 1e5);
  EXPECT_EQ(json[1]["ratio"], 32);
  for (const char* key : {"accuracy_mean", "accuracy_sd", "mode", "seeds", "seconds_mean"}) {
    EXPECT_TRUE(json[1].contains(key)) << key;
  }
}

}  // namespace
}  // namespace leeway::tools
