// Collected, weighted and dropped pushes on chains of replicas: all replicas keep the same, and a
// new head goes on where the old one was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/testing/chain_bench.h"

namespace leeway::ps {
namespace {

using testing::Each;

const char* const kPolicies[] = {
    "backup:1/2", "backup:2/2",       "backup:1/2,drop",       "softsync:1",
    "fedbuff:3",  "asp,weight=1/tau", "ssp:1,weight=poly:0.5", "fedbuff:3,weight=1/tau",
    "psp:1/1",    "dssp:0-3"};

void PushClock(ChainBench& bench, std::uint32_t table, std::uint64_t clock, std::uint32_t rank) {
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(rank, table, clock, block, rank == 0 ? 1 : 10);
  }
  bench.worker(rank).Tick(clock + 1);
}

TEST(ChainPolicies, ReplicasAreEqual) {
  for (const char* policy : kPolicies) {
    SCOPED_TRACE(policy);
    ChainBench bench({.servers = 3, .replication = 3});
    const std::uint32_t table = bench.Install(Consistency::Parse(policy).value());
    bench.SetChain({0, 1, 2});
    bench.Publish();
    for (std::uint64_t clock = 0; clock < 3; ++clock) {
      for (const std::uint32_t rank : {0u, 1u}) PushClock(bench, table, clock, rank);
    }
    bench.UntilIdle();
    bench.ExpectReplicasEqual();
  }
}

TEST(ChainPolicies, CollectedPushesOutliveTheHead) {
  for (const char* policy : {"backup:2/2", "fedbuff:4"}) {
    SCOPED_TRACE(policy);
    ChainBench bench({.servers = 3, .replication = 2});
    const std::uint32_t table = bench.Install(Consistency::Parse(policy).value());
    bench.SetChain({0, 1});
    bench.Publish();
    PushClock(bench, table, 0, 0);
    PushClock(bench, table, 0, 1);
    PushClock(bench, table, 1, 0);
    bench.UntilIdle();
    bench.Kill(0);
    bench.UntilIdle();
    PushClock(bench, table, 1, 1);
    bench.UntilIdle();
    EXPECT_THAT(bench.ReadAll(table, 2), Each(22));
  }
}

TEST(ChainPolicies, CollectedPushesMoveToANewReplica) {
  for (const char* policy : {"backup:2/2", "fedbuff:4", "fedbuff:4,weight=1/tau"}) {
    SCOPED_TRACE(policy);
    ChainBench bench({.servers = 2, .replication = 2});
    const std::uint32_t table = bench.Install(Consistency::Parse(policy).value());
    bench.SetChain({0});
    bench.Publish();
    PushClock(bench, table, 0, 0);
    PushClock(bench, table, 0, 1);
    PushClock(bench, table, 1, 0);
    bench.UntilIdle();
    bench.SetChain({0}, {1});
    bench.Publish();
    bench.Until([&] { return bench.ready().size() == 2; }, "until the replica has the state");
    bench.SetChain({0, 1});
    bench.Publish();
    bench.UntilIdle();
    bench.ExpectReplicasEqual();
    bench.Kill(0);
    bench.UntilIdle();
    PushClock(bench, table, 1, 1);
    bench.UntilIdle();
    bench.ReadAll(table, 2);
    const std::uint64_t applied = bench.thread(1).counters().pushes_applied;
    EXPECT_EQ(applied, 2 * ChainBench::kBlocks + (policy[0] == 'f' ? 2 * ChainBench::kBlocks : 0))
        << applied;
  }
}

TEST(ChainPolicies, ADroppedPushStaysDroppedWithANewHead) {
  ChainBench bench({.servers = 3, .replication = 2});
  const std::uint32_t table = bench.Install(Consistency::Parse("backup:1/2,drop").value());
  bench.SetChain({0, 1});
  bench.Publish();
  PushClock(bench, table, 0, 0);
  bench.UntilIdle();
  const auto late = bench.Push(1, table, 0, 0, 10);
  bench.UntilIdle();
  EXPECT_TRUE(absl::IsCancelled(bench.worker(1).ResultOf(late)));
  bench.Kill(0);
  bench.UntilIdle();
  EXPECT_THAT(bench.ReadAll(table, 1), Each(1));
  bench.ExpectReplicasEqual();
}

// Clock 0 closes with a push, clocks 1 and 2 without one, and the worker that ended them leaves.
TEST(ChainPolicies, AClosedClockStaysClosedWithAnyHead) {
  for (const bool moved : {false, true}) {
    SCOPED_TRACE(moved);
    ChainBench bench({.servers = 2, .replication = 2});
    const std::uint32_t table = bench.Install(Consistency::Parse("backup:1/2,drop").value());
    moved ? bench.SetChain({0}) : bench.SetChain({0, 1});
    bench.Publish();
    bench.UntilIdle();
    PushClock(bench, table, 0, 0);
    bench.UntilIdle();
    for (const std::uint64_t clock : {2u, 3u}) {
      bench.worker(0).Tick(clock);
      bench.UntilIdle();
    }
    if (moved) {
      bench.SetChain({0}, {1});
      bench.Publish();
      bench.Until([&] { return bench.ready().size() == 2; }, "until the replica has the state");
      bench.SetChain({0, 1});
      bench.Publish();
      bench.UntilIdle();
    }
    bench.map.workers[0].state = proto::WorkerState::kLeft;
    bench.Publish();
    bench.RunFor(absl::Milliseconds(100));  // the log is on both
    bench.Kill(0);
    bench.Until([&] { return bench.Published(); }, "until the other leads");
    const auto late = bench.Push(1, table, 2, 0, 10);
    bench.Until([&] { return bench.worker(1).Idle(); }, "until it is answered");
    EXPECT_TRUE(absl::IsCancelled(bench.worker(1).ResultOf(late)))
        << bench.worker(1).ResultOf(late);
  }
}

// What it sent before is older than what the head in between has sent.
TEST(ChainPolicies, AWeightedPushIsTakenByAHeadThatLeadsAgain) {
  ChainBench bench({.servers = 2, .replication = 2});
  const std::uint32_t table = bench.Install(Consistency::Parse("asp,weight=1/tau").value());
  const auto pull_from = [&](std::uint32_t head, std::uint32_t other) {
    bench.SetChain({head, other});
    bench.Publish();
    bench.UntilIdle();
    bench.Pull(0, table, 0, 0);
    bench.UntilIdle();
  };
  pull_from(0, 1);
  bench.Push(1, table, 0, 0, 1);
  bench.UntilIdle();
  pull_from(1, 0);
  bench.SetChain({0, 1});
  bench.Publish();
  bench.UntilIdle();
  const auto push = bench.Push(0, table, 0, 0, 10, /*read_updates=*/1);
  bench.UntilIdle();
  EXPECT_TRUE(bench.worker(0).ResultOf(push).ok()) << bench.worker(0).ResultOf(push);
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 11);
}

TEST(ChainPolicies, RowsAreCollectedAsBlocksAre) {
  ChainBench bench({.servers = 2, .replication = 2});
  TableSpec spec = TableSpec::Sparse("", 3);
  spec.consistency = Consistency::FedBuff(3);
  const std::uint32_t table = bench.Install(spec);
  bench.SetChain({0, 1});
  bench.Publish();
  const std::vector<std::uint64_t> keys = bench.KeysOf(0, 4);
  bench.PushRows(0, table, 0, {keys[0], keys[1]}, 3, 1);
  bench.PushRows(1, table, 0, {keys[1], keys[2]}, 3, 10);
  bench.UntilIdle();
  bench.ExpectReplicasEqual();
  bench.Kill(0);
  bench.UntilIdle();
  bench.PushRows(0, table, 0, {keys[3]}, 3, 100);
  bench.UntilIdle();
  EXPECT_EQ(bench.thread(1).counters().pushes_applied, 3u);
}

}  // namespace
}  // namespace leeway::ps
