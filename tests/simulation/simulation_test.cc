// Tests of the simulator itself: seeds pass, a seed gives the same run each time, and the
// invariants find faults.
#include "tests/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/log/log.h"
#include "runtime/memory/sanitized.h"
#include "tests/simulation/seed_runner.h"

namespace leeway::simulation {
namespace {

using ::testing::HasSubstr;

class SimulationTest : public testing::Test {
 protected:
  void SetUp() override { runtime::SetLogLevel(runtime::LogLevel::kOff); }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }
};

TEST_F(SimulationTest, SeedsPassUnderEveryFault) {
  std::vector<FaultCounts> faults;
  Campaign campaign;
  campaign.seeds = runtime::kSanitized ? 4 : 20;
  campaign.on_result = [&](const SeedResult& result) {
    EXPECT_EQ(DescribeFailure(result), "");
    EXPECT_GT(result.operations, 200u);
    EXPECT_GT(result.reads, 100u);
    faults.push_back(result.faults);
  };
  RunSeeds(campaign);
  EXPECT_EQ(faults.size(), campaign.seeds);
  if (runtime::kSanitized) return;  // too few for every kind of fault
  FaultSet met;
  for (const FaultCounts& counts : faults) {
    for (std::size_t kind = 0; kind < kFaultKinds; ++kind) {
      if (counts[kind] > 0) met.set(kind);
    }
  }
  EXPECT_EQ(met, AllFaults());
}

// Each failed once: a drain that was repeated, and moves of the scheduler that waited for a worker
// which had nothing to do, did not end; a handover, in which the old head acknowledged more than it
// had been sent, was taken for a commit; the scheduler moved while a worker was connected to no
// server that could have told it; a checkpoint was judged by a switch of a codec that was decided
// when all of it had been written; entries that a lone head had sent to nobody, and which a state
// had brought to its new follower, were taken for other ones than were committed; clocks that
// waited for one more worker did not close as it entered.
TEST_F(SimulationTest, SeedsThatFailedPass) {
  for (const std::uint64_t seed : std::initializer_list<std::uint64_t>{
           770051, 31337233, 31338319, 620001330, 620001308, 620001264, 987650093, 1795876776082}) {
    SeedOptions options;
    options.seed = seed;
    EXPECT_EQ(DescribeFailure(RunSeed(options)), "");
  }
}

TEST_F(SimulationTest, TheSameSeedGivesTheSameTraceInOneProcess) {
  if (runtime::kSanitized) GTEST_SKIP() << "determinism is tested without sanitizers";
  constexpr std::uint64_t seeds = 4;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SeedOptions options;
    options.seed = seed;
    options.keep_trace = true;
    const SeedResult first = RunSeed(options);
    const SeedResult second = RunSeed(options);
    EXPECT_GT(first.trace.size(), 10'000u);
    EXPECT_TRUE(first.trace == second.trace) << "seed " << seed;
    EXPECT_EQ(first.trace_hash, second.trace_hash);
    options.seed += 100;
    EXPECT_NE(first.trace_hash, RunSeed(options).trace_hash);
  }
}

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char chunk[4096];
  for (std::size_t n; (n = fread(chunk, 1, sizeof chunk, pipe)) > 0;) output.append(chunk, n);
  pclose(pipe);
  return output;
}

TEST_F(SimulationTest, TheSameSeedGivesTheSameTraceInAnotherProcess) {
  if (runtime::kSanitized) GTEST_SKIP() << "determinism is tested without sanitizers";
  const std::string command = absl::StrCat(LEEWAY_SIM_BINARY, " --seed 5 --trace");
  const std::string first = OutputOf(command);
  EXPECT_THAT(first, HasSubstr("1 passed, 0 failed"));
  EXPECT_GT(first.size(), 10'000u);
  EXPECT_TRUE(first == OutputOf(command));
  SeedOptions options;
  options.seed = 5;
  options.keep_trace = true;
  const SeedResult here = RunSeed(options);
  EXPECT_TRUE(first.compare(0, here.trace.size(), here.trace) == 0);
}

// A script that forgot the number would otherwise report success.
TEST_F(SimulationTest, NoSeedsAreAMistakeAndNoSuccess) {
  for (const char* arguments :
       {"--seeds 0", "--seeds -1", "--seeds 1 --jobs 0", "--seeds 1 --jobs 999999999"}) {
    const std::string output =
        OutputOf(absl::StrCat("timeout 10 ", LEEWAY_SIM_BINARY, " ", arguments, " 2>&1"));
    EXPECT_THAT(output, HasSubstr("not in range")) << arguments;
    EXPECT_THAT(output, testing::Not(HasSubstr("passed"))) << arguments;
  }
}

TEST_F(SimulationTest, ServersThatNeverHoldAreCaught) {
  SeedOptions options;
  options.data_options.test_only_never_hold = true;
  int caught = 0;
  for (options.seed = 1; options.seed <= 10; ++options.seed) {
    const SeedResult result = RunSeed(options);
    if (!result.violation.has_value()) continue;
    ++caught;
    EXPECT_FALSE(result.tail.empty());
    EXPECT_THAT(DescribeFailure(result), HasSubstr(absl::StrCat("seed ", options.seed, " broke")));
  }
  EXPECT_GE(caught, 5);
}

TEST(FaultKindsTest, ParsesNames) {
  EXPECT_EQ(*ParseFaults("all"), AllFaults());
  EXPECT_EQ(ParseFaults("drop,one-way")->count(), 2u);
  EXPECT_EQ(ParseFaults("-drop,one-way")->count(), AllFaults().count() - 2);
  EXPECT_EQ(ParseFaults("none")->count(), 0u);
  EXPECT_THAT(std::string(ParseFaults("dorp").status().message()), HasSubstr("no fault 'dorp'"));
}

}  // namespace
}  // namespace leeway::simulation
