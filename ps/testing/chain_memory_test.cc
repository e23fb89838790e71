// Replicas on servers whose tables may take different amounts of memory: the head decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/testing/chain_bench.h"

namespace leeway::ps {
namespace {

using ::testing::Each;

constexpr std::uint64_t kBlockBytes = ChainBench::kBlock * sizeof(float);

// A test in which any server gives up fails (ChainBench).
TEST(ChainMemory, NoReplicaIsAskedToTakeAPushThatTheHeadRefuses) {
  ChainBench bench({.servers = 2, .table_bytes_max = {2 * kBlockBytes, 0}});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  std::vector<ChainWorker::Key> pushes;
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    pushes.push_back(bench.Push(0, table, 0, block, 1));
  }
  bench.UntilIdle();
  std::vector<std::uint64_t> taken;  // blocks; which of them come first is open
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    const absl::Status result = bench.worker(0).ResultOf(pushes[block]);
    if (result.ok()) taken.push_back(block);
    EXPECT_TRUE(result.ok() || absl::IsResourceExhausted(result)) << result;
  }
  ASSERT_EQ(taken.size(), 2u);
  bench.ExpectReplicasEqual();
  bench.Push(0, table, 0, taken[0], 1);
  bench.UntilIdle();
  bench.Kill(0);
  bench.UntilIdle();
  const auto read = bench.Pull(1, table, 0, taken[0]);
  bench.UntilIdle();
  EXPECT_THAT(bench.worker(1).ValuesOf(read), Each(2));
}

TEST(ChainMemory, AReplicaTakesEveryPushOfTheHeadBeyondItsOwnLimit) {
  ChainBench bench({.servers = 2, .table_bytes_max = {0, kBlockBytes}});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(0, table, 0, block, 1);
  }
  bench.UntilIdle();
  EXPECT_THAT(bench.ReadAll(table, 0), Each(1));
  bench.ExpectReplicasEqual();
}

// Its head waits for it towards the end, so to refuse would hold up everybody.
TEST(ChainMemory, AReplicaTakesAStateBeyondItsLimit) {
  ChainBench bench({.servers = 2, .table_bytes_max = {0, kBlockBytes / 2}});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0});
  bench.Publish();
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(0, table, 0, block, 1);
  }
  bench.UntilIdle();
  bench.SetChain({0}, {1});
  bench.Publish();
  bench.Until([&] { return bench.ready().size() == 2; }, "until both shards are ready");
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.SetChain({0, 1});
  bench.Publish();
  bench.UntilIdle();
  bench.ExpectReplicasEqual();
}

}  // namespace
}  // namespace leeway::ps
