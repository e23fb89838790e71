// Chains of replicas: what is acknowledged is on all of them, and stays whatever dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ps/testing/chain_bench.h"

namespace leeway::ps {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Not;

// Two workers push 1 and 10 to every block in each clock, and end it.
void PushClock(ChainBench& bench, std::uint32_t table, std::uint64_t clock) {
  for (std::uint32_t rank : {0u, 1u}) {
    for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
      bench.Push(rank, table, clock, block, rank == 0 ? 1 : 10);
    }
    bench.worker(rank).Tick(clock + 1);
  }
}

std::vector<std::uint32_t> FirstOf(std::uint32_t replicas) {
  std::vector<std::uint32_t> chain;
  for (std::uint32_t rank = 0; rank < replicas; ++rank) chain.push_back(rank);
  return chain;
}

TEST(Chain, AllReplicasGetWhatTheHeadTook) {
  for (const Mode& mode : kModes) {
    for (const std::uint32_t replicas : {1u, 2u, 3u}) {
      SCOPED_TRACE(testing::Message() << mode.name << " on " << replicas);
      ChainBench bench({.servers = replicas, .replication = replicas});
      const std::uint32_t table = bench.Install(mode.consistency);
      bench.SetChain(FirstOf(replicas));
      bench.Publish();
      for (std::uint64_t clock = 0; clock < 3; ++clock) PushClock(bench, table, clock);
      bench.UntilIdle();
      EXPECT_THAT(bench.ReadAll(table, 3), Each(33));
      bench.ExpectReplicasEqual();
      bench.Until([&] { return bench.worker(0).KeepsNothing(); }, "until nothing is kept");
    }
  }
}

TEST(Chain, NothingIsAcknowledgedOrReadBeforeTheTailHasIt) {
  ChainBench bench({.servers = 3, .replication = 3});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1, 2});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(2));
  const auto push = bench.Push(0, table, 0, 0, 1);
  const auto read = bench.Pull(1, table, 0, 0);
  bench.RunFor(absl::Milliseconds(300));
  EXPECT_FALSE(bench.worker(0).Answered(push));
  EXPECT_FALSE(bench.worker(1).Answered(read));
  bench.network().HealAll();
  bench.UntilIdle();
  EXPECT_THAT(bench.worker(1).ValuesOf(read), Each(2));
}

TEST(Chain, ReadersAreToldNothingThatAFailoverCouldUndo) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    ChainBench bench({.servers = 2, .workers = 1});
    const std::uint32_t table = bench.Install(mode.consistency);
    const std::uint32_t reader = bench.AddReader();
    bench.SetChain({0, 1});
    bench.Publish();
    bench.Push(0, table, 0, 0, 1);
    bench.worker(0).Tick(1);
    bench.UntilIdle();
    const auto before = bench.Pull(reader, table, 0, 0);
    bench.UntilIdle();
    EXPECT_THAT(bench.worker(reader).ValuesOf(before), Each(1));
    bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
    bench.Push(0, table, 1, 0, 1);
    bench.worker(0).Tick(2);
    bench.RunFor(absl::Milliseconds(100));
    const auto read = bench.Pull(reader, table, 0, 0);
    bench.RunFor(absl::Milliseconds(300));
    EXPECT_FALSE(bench.worker(reader).Answered(read));
    // The push was never anywhere but at the head.
    bench.KillWorker(0);
    bench.Kill(0);
    bench.Until([&] { return bench.worker(reader).Answered(read); }, "until it is answered");
    EXPECT_THAT(bench.worker(reader).ValuesOf(read), Each(1));
  }
}

std::uint64_t ReadersWaitingBytes(ChainBench& bench) {
  return nlohmann::json::parse(
      bench.thread(0).StatusJson())["replication"]["readers_waiting_bytes"];
}

TEST(Chain, PullsOfAReaderThatHasGoneAreForgotten) {
  ChainBench bench({.servers = 2, .workers = 1});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  const std::uint32_t reader = bench.AddReader();
  bench.SetChain({0, 1});
  bench.Publish();
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(0, table, 0, block, 1);
  }
  bench.RunFor(absl::Milliseconds(100));
  bench.Pull(reader, table, 0, 0);
  bench.RunFor(absl::Milliseconds(100));
  EXPECT_GT(ReadersWaitingBytes(bench), 0u);
  bench.network().Kill(ChainBench::WorkerHostOf(reader));
  bench.RunFor(absl::Milliseconds(10));
  EXPECT_EQ(ReadersWaitingBytes(bench), 0u);
  bench.network().HealAll();
  bench.Until([&] { return bench.worker(0).Idle(); }, "until the pushes are answered");
}

// Two workers push 1 and 10 in each clock; from clock 2 on at half the rate, whatever comes when.
TEST(Chain, SettingsHoldFromTheirClockOnInEveryReplica) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(mode.name);
    ChainBench bench({.servers = 3});
    TableSpec spec = TableSpec::Dense("", {ChainBench::kBlocks * ChainBench::kBlock});
    spec.updater = {"sgd", {{"learning_rate", 1}}};
    spec.consistency = mode.consistency;
    const std::uint32_t table = bench.Install(spec);
    bench.SetChain({0, 1});
    bench.Publish();
    PushClock(bench, table, 0);
    bench.map.table_settings = {{.table = table,
                                 .number = 1,
                                 .since = 2,
                                 .decided = true,
                                 .parameters = {{"learning_rate", 0.5}},
                                 .consistency = mode.consistency}};
    bench.Publish();
    bench.UntilIdle();
    // Worker 0 is ahead where it may be: what worker 1 pushes in clock 1 comes last.
    for (const std::uint64_t clock : {1u, 2u}) {
      for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
        bench.Push(0, table, clock, block, 1);
      }
      bench.worker(0).Tick(clock + 1);
    }
    bench.RunFor(absl::Milliseconds(100));
    for (const std::uint64_t clock : {1u, 2u}) {
      for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
        bench.Push(1, table, clock, block, 10);
      }
      bench.worker(1).Tick(clock + 1);
    }
    bench.UntilIdle();
    EXPECT_THAT(bench.ReadAll(table, 3), Each(-27.5));
    bench.ExpectReplicasEqual();
    // The next head, and one that comes late, know the same.
    bench.SetChain({0, 1}, /*joining=*/{2});
    bench.Publish();
    bench.Until([&] { return bench.ready().size() == 2; }, "until it is ready");
    bench.SetChain({0, 1, 2});
    bench.Publish();
    bench.UntilIdle();
    bench.Kill(0);
    PushClock(bench, table, 3);
    bench.UntilIdle();
    EXPECT_THAT(bench.ReadAll(table, 4), Each(-33));
    bench.ExpectReplicasEqual();
  }
}

TEST(Chain, AWorkerIsToldTheNameOfTheReplicaItWaitsFor) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  const std::uint32_t reader = bench.AddReader();
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  bench.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
  bench.timeout_ms = 500;
  const auto push = bench.Push(0, table, 0, 0, 1);
  bench.timeout_ms = 700;
  const auto pull = bench.Pull(1, table, 0, 0);
  const auto read = bench.Pull(reader, table, 0, 0);
  bench.RunFor(absl::Milliseconds(600));
  EXPECT_FALSE(bench.worker(1).Answered(pull));
  const auto told = [&](const absl::Status& result) {
    EXPECT_EQ(result.code(), absl::StatusCode::kDeadlineExceeded);
    EXPECT_THAT(std::string(result.message()),
                AllOf(HasSubstr("server 1, last heard "), HasSubstr("LEEWAY_REQUEST_TIMEOUT_MS")));
  };
  told(bench.worker(0).ResultOf(push));
  EXPECT_THAT(std::string(bench.worker(0).ResultOf(push).message()), HasSubstr("the push"));
  bench.RunFor(absl::Milliseconds(200));
  told(bench.worker(1).ResultOf(pull));
  // Of a push only who pushed is told, and a reader what it can do.
  const absl::Status told_reader = bench.worker(reader).ResultOf(read);
  told(told_reader);
  EXPECT_THAT(std::string(told_reader.message()),
              AllOf(HasSubstr("A reader"), HasSubstr("pull again"), Not(HasSubstr("push"))));
  // It was accepted, as it turns out, and only once.
  bench.network().HealAll();
  bench.UntilIdle();
  const auto later = bench.Pull(1, table, 0, 0);
  bench.UntilIdle();
  EXPECT_THAT(bench.worker(1).ValuesOf(later), Each(2));
  EXPECT_EQ(bench.thread(0).UnderWay(), "");
}

// A push to that block in a chain of three. The middle has acknowledged the entry; its word that
// the tail has it as well is lost.
void LoseNewsOfACommit(ChainBench& bench, std::uint64_t block) {
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1, 2});
  bench.Publish();
  for (std::uint64_t first : {0u, 1u}) bench.Push(0, table, 0, first, 1);
  bench.UntilIdle();
  bench.RunFor(absl::Milliseconds(20));
  const auto push = bench.Push(0, table, 0, block, 1);
  bench.RunFor(absl::Microseconds(220));
  bench.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
  bench.RunFor(absl::Milliseconds(1));
  EXPECT_FALSE(bench.worker(0).Answered(push));
  bench.network().HealAll();
}

TEST(Chain, LostNewsOfACommitIsToldAgain) {
  for (const std::uint64_t block : {0u, 1u}) {  // of different shards
    ChainBench bench({.servers = 3, .replication = 3});
    LoseNewsOfACommit(bench, block);
    bench.UntilIdle();
  }
}

// Likewise, but the connection breaks meanwhile. The head has nothing to send that would make
// another: the middle has acknowledged all, and nobody pushes anything new.
TEST(Chain, LostNewsOfACommitIsToldOverAConnectionOfTheNextOnesOwn) {
  for (const std::uint64_t block : {0u, 1u}) {  // of different shards
    ChainBench bench({.servers = 3, .replication = 3});
    LoseNewsOfACommit(bench, block);
    bench.network().Break(ChainBench::HostOf(0), ChainBench::HostOf(1));
    bench.UntilIdle();
  }
}

TEST(Chain, BspPushesAreAnsweredProvisionallyAndKeptUntilTheirClockIsStable) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  EXPECT_FALSE(bench.worker(0).KeepsNothing());
  bench.worker(0).Tick(1);
  bench.RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(bench.worker(0).KeepsNothing());
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  bench.worker(1).Tick(1);
  bench.RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(bench.worker(0).KeepsNothing());  // closed, but not on all replicas
  bench.network().HealAll();
  bench.Until([&] { return bench.worker(0).KeepsNothing(); }, "until its clock is stable");
}

// A worker's two kinds of requests to a shard count together but are admitted apart: an applied
// push of the one says nothing of a held push of the other before it.
TEST(Chain, HeldAndAppliedPushesOfOneWorkerAreToldApartAfterAFailover) {
  ChainBench bench({.servers = 2, .shards = 1});
  const std::uint32_t bsp = bench.Install(Consistency::Bsp());
  const std::uint32_t asp = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, bsp, 0, 0, 3);
  bench.Push(0, asp, 0, 0, 5);
  bench.UntilIdle();
  bench.Kill(0);
  bench.worker(0).Tick(1);
  bench.worker(1).Tick(1);
  EXPECT_EQ(bench.ReadAll(bsp, 1)[0], 3);
  EXPECT_EQ(bench.ReadAll(asp, 1)[0], 5);
}

// ---- a head that dies ----

class HeadKilled : public testing::TestWithParam<Mode> {};

// The time is cut finely enough to fall between any two messages.
TEST_P(HeadKilled, AtAnyMomentNothingIsLostAndNothingAppliedTwice) {
  constexpr int kClocks = 3;
  int kills = 0;
  for (const std::uint32_t replicas : {2u, 3u}) {
    for (absl::Duration when = absl::Microseconds(20); when < absl::Microseconds(1500);
         when += absl::Microseconds(40)) {
      SCOPED_TRACE(testing::Message() << replicas << " replicas, killed after " << when);
      ChainBench bench({.servers = replicas, .replication = replicas});
      const std::uint32_t table = bench.Install(GetParam().consistency);
      bench.SetChain(FirstOf(replicas));
      bench.Publish();
      bench.Until([&] { return bench.Published(); }, "until the map is known");
      for (int clock = 0; clock < kClocks; ++clock) PushClock(bench, table, clock);
      bench.RunFor(when);
      bench.Kill(0);
      bench.UntilIdle();
      ASSERT_THAT(bench.ReadAll(table, kClocks), Each(11 * kClocks));
      bench.ExpectReplicasEqual();
      ++kills;
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(kills, 50);
}

TEST_P(HeadKilled, MiddleAndTailAsWell) {
  for (const std::uint32_t victim : {1u, 2u}) {
    for (absl::Duration when = absl::Microseconds(20); when < absl::Microseconds(1500);
         when += absl::Microseconds(60)) {
      SCOPED_TRACE(testing::Message() << "server " << victim << " killed after " << when);
      ChainBench bench({.servers = 3, .replication = 3});
      const std::uint32_t table = bench.Install(GetParam().consistency);
      bench.SetChain({0, 1, 2});
      bench.Publish();
      bench.Until([&] { return bench.Published(); }, "until the map is known");
      for (int clock = 0; clock < 3; ++clock) PushClock(bench, table, clock);
      bench.RunFor(when);
      bench.Kill(victim);
      bench.UntilIdle();
      ASSERT_THAT(bench.ReadAll(table, 3), Each(33));
      bench.ExpectReplicasEqual();
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(HeadKilled, OneAfterTheOther) {
  ChainBench bench({.servers = 4, .replication = 4});
  const std::uint32_t table = bench.Install(GetParam().consistency);
  bench.SetChain({0, 1, 2, 3});
  bench.Publish();
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    PushClock(bench, table, clock);
    bench.RunFor(absl::Microseconds(230));
    bench.Kill(static_cast<std::uint32_t>(clock));
  }
  bench.UntilIdle();
  EXPECT_THAT(bench.ReadAll(table, 3), Each(33));
}

INSTANTIATE_TEST_SUITE_P(Modes, HeadKilled, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Fence, ADeposedHeadAcknowledgesNothing) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  // Server 1 leads now; server 0 and the workers have not heard.
  bench.map.servers[0].alive = false;
  bench.DropFromChains(0);
  ++bench.map.version;
  bench.PublishTo({1});
  bench.RunFor(absl::Milliseconds(1));
  const auto push = bench.Push(0, table, 0, 0, 1);
  const auto read = bench.Pull(1, table, 0, 0);
  bench.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench.worker(0).Answered(push));
  EXPECT_FALSE(bench.worker(1).Answered(read));
  bench.Publish();
  bench.UntilIdle();
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 2);
}

TEST(Lost, AShardWithoutReplicasSaysSo) {
  ChainBench bench({.servers = 2, .replication = 1});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.Kill(0);
  const auto push = bench.Push(0, table, 0, 0, 1);
  bench.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench.worker(0).Answered(push));
}

// ---- bad links ----

TEST(BadLinks, DropsDuplicatesAndReordersWithKillsLoseNothing) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    for (const Mode& mode : kModes) {
      SCOPED_TRACE(testing::Message() << mode.name << ", seed " << seed);
      ChainBench bench({.seed = seed, .servers = 3, .replication = 3});
      const std::uint32_t table = bench.Install(mode.consistency);
      bench.SetChain({0, 1, 2});
      bench.Publish();
      bench.Until([&] { return bench.Published(); }, "until the map is known");
      bench.network().SetFaults({.delay_max = absl::Microseconds(500),
                                 .drop_probability = 0.05,
                                 .duplicate_probability = 0.1,
                                 .reorder_probability = 0.1});
      for (std::uint64_t clock = 0; clock < 4; ++clock) {
        PushClock(bench, table, clock);
        bench.RunFor(absl::Milliseconds(1 + static_cast<int>(bench.world().Random() % 30)));
        if (clock == 1) bench.Kill(static_cast<std::uint32_t>(seed % 3));
      }
      bench.UntilIdle();
      bench.network().SetFaults({});
      ASSERT_THAT(bench.ReadAll(table, 4), Each(44));
      bench.ExpectReplicasEqual();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace leeway::ps
