// Seeds over the rdma transport: verbs fail, devices are lost, processes die, and every promise
// holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/log/log.h"
#include "runtime/memory/sanitized.h"
#include "tests/simulation/seed_runner.h"

namespace leeway::simulation {
namespace {

class RdmaSeedsTest : public testing::Test {
 protected:
  void SetUp() override { runtime::SetLogLevel(runtime::LogLevel::kOff); }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }
};

TEST_F(RdmaSeedsTest, SeedsPassWhileVerbsFail) {
  Campaign campaign;
  campaign.seeds = runtime::kSanitized ? 2 : 6;
  campaign.options.over_rdma = true;
  van::verbs::FakeCounters all;
  campaign.on_result = [&](const SeedResult& result) {
    EXPECT_EQ(DescribeFailure(result), "");
    EXPECT_GT(result.operations, 200u);
    all.failed += result.verbs.failed;
    all.written_bytes += result.verbs.written_bytes;
    all.refused_registrations += result.verbs.refused_registrations;
    all.lost_devices += result.verbs.lost_devices;
  };
  RunSeeds(campaign);
  EXPECT_GT(all.failed, 5u);
  EXPECT_GT(all.written_bytes, 1u << 18);
  if (runtime::kSanitized) return;
  EXPECT_GT(all.refused_registrations, 0u);
  EXPECT_GT(all.lost_devices, 0u);
}

TEST_F(RdmaSeedsTest, TheSameSeedGivesTheSameTrace) {
  if (runtime::kSanitized) GTEST_SKIP() << "determinism is tested without sanitizers";
  SeedOptions options;
  options.seed = 3;
  options.over_rdma = true;
  options.keep_trace = true;
  const SeedResult first = RunSeed(options);
  const SeedResult second = RunSeed(options);
  EXPECT_GT(first.trace.size(), 10'000u);
  EXPECT_TRUE(first.trace == second.trace);
  options.seed = 4;
  EXPECT_NE(first.trace_hash, RunSeed(options).trace_hash);
}

}  // namespace
}  // namespace leeway::simulation
