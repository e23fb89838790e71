// The results of `leeway compression`, seen from outside.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/temp_folder.h"

namespace leeway::tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

// The exit status and the whole output.
std::pair<int, std::string> RunToEnd(const std::string& command) {
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, ""};
  std::string said;
  char part[4096];
  while (std::fgets(part, sizeof(part), pipe) != nullptr) said += part;
  return {pclose(pipe), said};
}

TEST(CompressionTest, ComparesCodecs) {
  const runtime::TempFolder temp_folder;
  const std::string& pattern = temp_folder.path();
  const std::string folder = pattern + "/new/folder";
  const auto [status, said] =
      RunToEnd(absl::StrCat(LEEWAY_BINARY, " compression --model softmax --workers 2 --servers 1",
                            " --steps 20 --seeds 1 --codecs onebit --modes ssp:3 --out ", folder));
  ASSERT_EQ(status, 0) << said;
  EXPECT_THAT(said, ContainsRegex("ssp:3  onebit  both "));
  EXPECT_THAT(said, ContainsRegex("\nplots(: | are left out: )"));

  std::ifstream file(folder + "/results.json");
  const auto results = nlohmann::json::parse(file);
  ASSERT_EQ(results.size(), 3u) << results;
  EXPECT_EQ(results[0]["codec"], "none");
  // 784 × 10 weights and 10 biases, of 2 workers in both directions.
  EXPECT_EQ(results[0]["bytes_per_step"], 7850 * 4 * 2 * 2);
  EXPECT_EQ(results[1]["codec"], "onebit");
  EXPECT_EQ(results[1]["error_feedback"], "both");
  EXPECT_GT(results[1]["ratio"], 10);
  EXPECT_EQ(results[2]["error_feedback"], "off");
  EXPECT_NEAR(results[2]["ratio"], 2, 0.1);  // pulls travel uncompressed
  for (const auto& result : results) EXPECT_GT(result["accuracy_mean"], 0.3) << result;
}

TEST(CompressionTest, NamesACodecThatIsNotThereAndTakesOneOfAPlugin) {
  const runtime::TempFolder temp_folder;
  const std::string& folder = temp_folder.path();
  const std::string command =
      absl::StrCat(LEEWAY_BINARY, " compression --model softmax --workers 1 --servers 1 --steps 5",
                   " --seeds 1 --codecs 'onebit;plugin_ones' --out ", folder);
  const auto [without, complaint] = RunToEnd(command);
  EXPECT_NE(without, 0);
  EXPECT_THAT(complaint, HasSubstr("--codecs: there is no codec named 'plugin_ones'"));
  const auto [with, said] = RunToEnd(absl::StrCat("LEEWAY_PLUGINS=", PLUGIN, " ", command));
  EXPECT_EQ(with, 0) << said;
  EXPECT_THAT(said, ContainsRegex("bsp +plugin_ones"));
}

TEST(CompressionTest, NamesItsOwnOptionWhereAModeIsWrong) {
  const auto [status, said] = RunToEnd(absl::StrCat(LEEWAY_BINARY, " compression --modes bsp,foo"));
  EXPECT_NE(status, 0);
  EXPECT_THAT(said, HasSubstr("leeway: --modes: consistency is \"foo\""));
}

}  // namespace
}  // namespace leeway::tests
