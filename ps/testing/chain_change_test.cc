// Chains that change while training goes on: new replicas join, shards are handed over, and
// workers come late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/messages/layout.h"
#include "ps/testing/chain_bench.h"

namespace leeway::ps {
namespace {

using testing::Each;

// Workers 0 and 1 go on clock by clock, each with a pull of what it pushes to.
class Training {
 public:
  Training(ChainBench* bench, std::uint32_t table) : bench_(bench), table_(table) {}

  void Step() {
    for (std::uint32_t rank : {0u, 1u}) {
      for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
        bench_->Push(rank, table_, clock_, block, rank == 0 ? 1 : 10);
      }
      bench_->worker(rank).Tick(clock_ + 1);
    }
    ++clock_;
    for (std::uint32_t rank : {0u, 1u}) bench_->Pull(rank, table_, clock_, clock_ % 4);
    bench_->RunFor(absl::Microseconds(150 + static_cast<int>(bench_->world().Random() % 400)));
  }
  void ExpectNothingLost() {
    bench_->UntilIdle();
    ASSERT_THAT(bench_->ReadAll(table_, clock_), Each(11.0f * static_cast<float>(clock_)));
    bench_->ExpectReplicasEqual();
  }

 private:
  ChainBench* bench_;
  std::uint32_t table_;
  std::uint64_t clock_ = 0;
};

class ChainChange : public testing::TestWithParam<Mode> {
 protected:
  void UntilReady(ChainBench& bench, Training& training) {
    for (int i = 0; i < 4000 && bench.ready().size() < bench.map.owners.size(); ++i) {
      training.Step();
    }
    ASSERT_GE(bench.ready().size(), bench.map.owners.size());
    bench.ready().clear();
  }
};

TEST_P(ChainChange, ANewReplicaJoinsUnderTrafficAndCanTakeOver) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ChainBench bench({.seed = seed, .servers = 3});
    const std::uint32_t table = bench.Install(GetParam().consistency);
    Training training(&bench, table);
    bench.SetChain({0});
    bench.Publish();
    for (int i = 0; i < 20; ++i) training.Step();
    bench.SetChain({0}, {1});
    bench.Publish();
    UntilReady(bench, training);
    // It has been acknowledged by both from here on, whether or not the map says so already.
    bench.SetChain({0, 1});
    if (seed % 2 == 0) bench.Publish();
    training.Step();
    bench.Kill(0);
    for (int i = 0; i < 10; ++i) training.Step();
    training.ExpectNothingLost();
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(ChainChange, ATailThatDiesDuringATransferIsReplacedByAnother) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    ChainBench bench({.seed = seed, .servers = 3});
    const std::uint32_t table = bench.Install(GetParam().consistency);
    Training training(&bench, table);
    bench.SetChain({0, 1});
    bench.Publish();
    for (int i = 0; i < 10; ++i) training.Step();
    bench.SetChain({0, 1}, {2});
    bench.Publish();
    for (std::uint64_t i = 0; i < seed / 3; ++i) training.Step();
    bench.Kill(1);
    bench.Until([&] { return bench.Published(); }, "until the map is known");
    bench.ready().clear();
    UntilReady(bench, training);
    bench.SetChain({0, 2});
    bench.Publish();
    for (int i = 0; i < 3; ++i) training.Step();
    bench.Kill(0);
    for (int i = 0; i < 3; ++i) training.Step();
    training.ExpectNothingLost();
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(ChainChange, AShardIsHandedOverUnderTraffic) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    ChainBench bench({.seed = seed, .servers = 2, .replication = 1});
    const std::uint32_t table = bench.Install(GetParam().consistency);
    Training training(&bench, table);
    bench.SetChain({0});
    bench.Publish();
    for (int i = 0; i < 5; ++i) training.Step();
    bench.SetChain({0}, {1});
    bench.Publish();
    UntilReady(bench, training);
    bench.SetChain({0, 1});
    bench.Publish();
    training.Step();
    bench.Until([&] { return bench.Published(); }, "until the map is known");
    // Turned round, or gone for good.
    bench.SetChain(seed % 2 == 0 ? std::vector<std::uint32_t>{1, 0}
                                 : std::vector<std::uint32_t>{1});
    bench.Publish();
    for (int i = 0; i < 10; ++i) training.Step();
    training.ExpectNothingLost();
    if (seed % 2 != 0) {
      EXPECT_EQ(bench.replica(0, 0), nullptr);  // its memory is free
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(ChainChange, NothingIsLostByADeathDuringAHandover) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const std::uint32_t victim : {0u, 1u}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", server " << victim << " dies");
      ChainBench bench({.seed = seed, .servers = 2});
      const std::uint32_t table = bench.Install(GetParam().consistency);
      Training training(&bench, table);
      bench.SetChain({0, 1});
      bench.Publish();
      for (int i = 0; i < 5; ++i) training.Step();
      bench.Until([&] { return bench.Published(); }, "until the map is known");
      bench.SetChain({1, 0});
      bench.Publish();
      bench.RunFor(absl::Microseconds(static_cast<int>(20 * seed)));
      bench.Kill(victim);
      for (int i = 0; i < 5; ++i) training.Step();
      training.ExpectNothingLost();
      if (testing::Test::HasFailure()) return;
    }
  }
}

// A head without replicas promises to keep them: nobody else does.
TEST(TransferOfFirmPushes, WaitsUntilTheirClockHasClosed) {
  ChainBench bench({.servers = 2, .replication = 1});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0});
  bench.Publish();
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(0, table, 0, block, 1);
  }
  bench.UntilIdle();
  EXPECT_TRUE(bench.worker(0).KeepsNothing());
  bench.SetChain({0}, {1});
  bench.Publish();
  bench.RunFor(absl::Seconds(1));
  EXPECT_TRUE(bench.ready().empty());
  for (const std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(1);
  bench.Until([&] { return bench.ready().size() == bench.map.owners.size(); }, "until ready");
}

// What only the head has may be undone, and is neither told to a late worker nor saved.
class HeadAlone : public testing::Test {
 protected:
  HeadAlone() {
    bench_.SetChain({0, 1});
    bench_.Publish();
    bench_.UntilIdle();
    bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  }
  void Heal() { bench_.network().HealAll(); }

  ChainBench bench_{{.servers = 2}};
  const std::uint32_t table_ = bench_.Install(Consistency::Asp());
};

TEST_F(HeadAlone, LetsALateWorkerInWhenItsReplicasKnow) {
  bench_.AddWorker(/*late=*/true);
  bench_.Publish();
  bench_.worker(2).Enter();
  bench_.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench_.worker(2).entered().has_value());
  Heal();
  bench_.Until([&] { return bench_.worker(2).entered().has_value(); }, "until it is let in");
}

TEST_F(HeadAlone, SavesNothingThatItsReplicasDoNotHave) {
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench_.Push(0, table_, 0, block, 1);
  }
  bench_.RunFor(absl::Milliseconds(50));
  std::uint32_t saved = 0;
  CutOrder order;
  order.folder = "/saved/1";
  const absl::StatusOr<std::uint32_t> shards =
      bench_.thread(0).BeginCuts(order, [&](const auto& frozen) { saved += frozen.ok() ? 1 : 0; });
  ASSERT_TRUE(shards.ok()) << shards.status();
  bench_.RunFor(absl::Milliseconds(200));
  EXPECT_EQ(saved, 0u);
  Heal();
  bench_.Until([&] { return saved == *shards; }, "until they are saved");
}

// Shards on their way to another server.
TEST(HandoverUnderWay, IsNoTimeForACheckpoint) {
  ChainBench bench({.servers = 2});
  bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  bench.SetChain({1, 0});
  bench.Publish();
  bench.RunFor(absl::Milliseconds(100));
  ASSERT_FALSE(bench.replica(1, 0)->leads());
  EXPECT_EQ(bench.thread(1).BeginCuts(CutOrder(), [](const auto&) {}).status().code(),
            absl::StatusCode::kAborted);
}

// Two shards of a server: one that it leads alone, and one that is being handed over to it. After a
// death workers hear of such a map before the handover has come.
class HandoverOfOneOfTwo : public testing::Test {
 protected:
  HandoverOfOneOfTwo() {
    const std::uint32_t table = bench_.Install(Consistency::Bsp());
    bench_.SetChain({0, 1});
    bench_.map.owners[1] = {.server_rank = 1};
    std::erase_if(bench_.map.replicas, [](const auto& replica) { return replica.shard == 1; });
    bench_.Publish();
    for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
      for (const std::uint32_t rank : {0u, 1u}) bench_.Push(rank, table, 0, block, 1);
    }
    bench_.UntilIdle();
    bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
    bench_.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
    bench_.map.owners[0] = {.server_rank = 1};
    bench_.map.replicas[0].place = {.server_rank = 0};
    bench_.Publish();
    bench_.RunFor(absl::Milliseconds(100));
    EXPECT_FALSE(bench_.replica(1, 0)->leads());
    EXPECT_TRUE(bench_.replica(1, 1)->leads());
    for (const std::uint32_t rank : {0u, 1u}) {
      bench_.worker(rank).TakeMap(bench_.map);
      bench_.worker(rank).Tick(1);
    }
    bench_.RunFor(absl::Milliseconds(300));
  }

  ChainBench bench_{{.servers = 2}};
};

// What was pushed to the other shard only its old head and the workers have.
TEST_F(HandoverOfOneOfTwo, WorkersKeepTheirPushesThoughTheOtherShardHasClosedTheClock) {
  EXPECT_EQ(bench_.replica(1, 1)->stable(), 1u);
  EXPECT_EQ(bench_.worker(0).stable_told(), 0u);
}

TEST_F(HandoverOfOneOfTwo, ATickIsNotAcknowledgedThatOneShardHasNotCounted) {
  EXPECT_FALSE(bench_.worker(0).TickCounted(1));
}

TEST(RestoredShards, ArePushedToAfterwards) {
  ChainBench bench({.servers = 1, .replication = 1});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0});
  bench.Publish();
  ShardContent content;
  content.num_shards = static_cast<std::uint32_t>(bench.map.owners.size());
  bench.UntilIdle();
  EXPECT_TRUE(bench.thread(0).Restore(content).ok());
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(0, table, 0, block, 1);
  }
  bench.UntilIdle();
  EXPECT_EQ(bench.thread(0).Restore(content).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Readers, AreServedByHeadsAlone) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  const std::uint32_t reader = bench.AddReader();
  bench.SetChain({0, 1});
  bench.Publish();
  bench.UntilIdle();
  proto::ClusterMap wrong = bench.map;
  ++wrong.version;
  for (proto::ShardOwner& owner : wrong.owners) owner.server_rank = 1;
  bench.worker(reader).TakeMap(wrong);
  const ChainWorker::Key read = bench.Pull(reader, table, 0, 0);
  bench.RunFor(absl::Seconds(1));
  EXPECT_TRUE(!bench.worker(reader).Answered(read) || !bench.worker(reader).ResultOf(read).ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, ChainChange, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

// Tables of every kind whose next update depends on more than their values.
class EveryKind : public testing::TestWithParam<Mode> {
 protected:
  void Install(ChainBench& bench) {
    TableSpec dense = TableSpec::Dense("", {ChainBench::kBlocks * ChainBench::kBlock});
    dense.updater = {.name = "adam", .parameters = {{"learning_rate", 0.1}}};
    TableSpec sparse = TableSpec::Sparse("", 8);
    sparse.updater = {.name = "adagrad", .parameters = {{"learning_rate", 0.1}}};
    TableSpec halves = sparse;
    halves.aggregate = Aggregate::kMean;
    TableSpec ragged = TableSpec::Ragged("");
    ragged.updater.name = "assign";
    for (TableSpec* spec : {&dense, &sparse, &halves, &ragged}) {
      spec->consistency = GetParam().consistency;
    }
    dense_ = bench.Install(dense);
    rows_ = {{bench.Install(sparse), 8}, {bench.Install(halves), 8}, {bench.Install(ragged), 5}};
  }
  void Push(ChainBench& bench, std::uint64_t clock) {
    for (std::uint32_t rank : {0u, 1u}) {
      const float value = 0.5f + static_cast<float>(rank + clock);
      for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
        bench.Push(rank, dense_, clock, block, value);
      }
      for (const auto& [table, width] : rows_) {
        for (std::uint32_t shard = 0; shard < bench.map.owners.size(); ++shard) {
          bench.PushRows(rank, table, clock, bench.KeysOf(shard, 20 + clock % 7), width, value);
        }
      }
      bench.worker(rank).Tick(clock + 1);
    }
  }
  std::vector<std::uint64_t> DigestsAt(ChainBench& bench, std::uint32_t server) {
    std::vector<std::uint64_t> digests;
    for (std::uint32_t shard = 0; shard < bench.map.owners.size(); ++shard) {
      digests.push_back(bench.replica(server, shard)->shard().Digest());
    }
    return digests;
  }

 private:
  std::uint32_t dense_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rows_;  // table, width
};

// The window is so small that a state transfer takes many rounds, and the log waits behind it.
TEST_P(EveryKind, IsTransferredAndFollowedBitByBit) {
  ChainBench::Options options{.servers = 3};
  options.config.replication_window_bytes = 4096;
  ChainBench bench(options);
  Install(bench);
  bench.SetChain({0});
  bench.Publish();
  std::uint64_t clock = 0;
  for (; clock < 10; ++clock) Push(bench, clock);
  bench.UntilIdle();
  bench.SetChain({0}, {1});
  bench.Publish();
  for (; clock < 200 && bench.ready().size() < bench.map.owners.size(); ++clock) {
    Push(bench, clock);
    bench.RunFor(absl::Milliseconds(1));
  }
  ASSERT_EQ(bench.ready().size(), bench.map.owners.size());
  bench.SetChain({0, 1}, {2});
  bench.Publish();
  for (const std::uint64_t end = clock + 10; clock < end; ++clock) Push(bench, clock);
  bench.UntilIdle();
  bench.ExpectReplicasEqual();
  EXPECT_EQ(DigestsAt(bench, 2), DigestsAt(bench, 0));
}

// The replicas of a chain whose head dies hold what one server alone would.
TEST_P(EveryKind, GoesOnAsIfNothingHadHappened) {
  std::vector<std::vector<float>> runs;
  for (const bool kill : {false, true}) {
    ChainBench bench({.servers = 3, .workers = 2, .shards = 1, .replication = 3});
    Install(bench);
    bench.SetChain({0, 1, 2});
    bench.Publish();
    for (std::uint64_t clock = 0; clock < 6; ++clock) {
      Push(bench, clock);
      // One after the other, so that ASP applies in the same order both times.
      bench.UntilIdle();
      if (kill && clock == 3) bench.Kill(0);
    }
    bench.UntilIdle();
    bench.ExpectReplicasEqual();
    runs.push_back(bench.ReadAll(1, 6));
  }
  if (GetParam().consistency.is_bsp()) {
    EXPECT_EQ(runs[0], runs[1]);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, EveryKind, testing::ValuesIn(kModes),
                         [](const auto& test) { return std::string(test.param.name); });

// What a replica says of a stream may come late: that it had not seen the beginning, when it has
// said since that it is full.
TEST(StateTransfer, EndsOverLinksThatReorder) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ChainBench bench({.seed = seed, .servers = 2});
    const std::uint32_t table = bench.Install(Consistency::Asp());
    bench.SetChain({0});
    bench.Publish();
    for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
      bench.Push(0, table, 0, block, 7);
    }
    bench.UntilIdle();
    van::LinkFaults faults;
    faults.reorder_probability = 0.4;
    faults.reorder_delay = absl::Milliseconds(50);
    bench.network().SetFaults(faults);
    bench.SetChain({0}, {1});
    bench.Publish();
    bench.Until([&] { return bench.ready().size() == 2; }, "until both shards are ready");
    bench.SetChain({0, 1});
    bench.Publish();
    bench.Push(1, table, 0, 0, 1);
    bench.Push(1, table, 0, 1, 1);
    bench.UntilIdle();
    bench.ExpectReplicasEqual();
    if (testing::Test::HasFailure()) return;
  }
}

// What is held for a clock comes along, so that a worker that dies after it has ended the clock
// has not worked for nothing.
TEST(Handover, TakesContributionsAlong) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(1, table, 0, 0, 7);
  bench.worker(1).Tick(1);
  bench.UntilIdle();
  bench.KillWorker(1);
  bench.SetChain({1, 0});
  bench.Publish();
  bench.worker(0).Tick(1);
  EXPECT_EQ(bench.ReadAll(table, 1)[0], 7);
}

// What is handed over may arrive before the map that says so.
TEST(Handover, TakesContributionsThatComeBeforeTheMap) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
    bench.Push(1, table, 0, block, 7);
  }
  bench.worker(1).Tick(1);
  bench.UntilIdle();
  bench.KillWorker(1);
  bench.SetChain({1, 0});
  bench.PublishTo({0});
  bench.RunFor(absl::Milliseconds(1));
  bench.Publish();
  bench.worker(0).Tick(1);
  EXPECT_THAT(bench.ReadAll(table, 1), testing::Each(7));
}

// A head that is asked to hand over again what it has handed over says so, once for each time.
TEST(Handover, IsReportedNoLongerThanItLasts) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    ChainBench bench({.seed = seed, .servers = 2});
    bench.Install(Consistency::Bsp());
    bench.SetChain({0, 1});
    bench.Publish();
    bench.Until([&] { return bench.Published(); }, "until the map is known");
    van::LinkFaults faults;
    faults.duplicate_probability = 0.5;
    faults.reorder_delay = absl::Milliseconds(20);
    bench.network().SetFaults(faults);
    bench.SetChain({1, 0});
    bench.Publish();
    bench.Until([&] { return bench.Published(); }, "until it has been handed over");
    bench.Publish();  // a map that does not speak of it any more
    bench.RunFor(absl::Milliseconds(50));
    bench.world().KeepTrace(true);
    bench.RunFor(absl::Milliseconds(20));
    EXPECT_LE(std::count(bench.world().trace().begin(), bench.world().trace().end(), '\n'), 20)
        << "seed " << seed << "\n"
        << bench.world().trace().substr(0, 1000);
    if (testing::Test::HasFailure()) return;
  }
}

// It knew that the worker had ended the clock, and has given away what was pushed in it.
TEST(Handover, AHeadThatLeadsAgainAwaitsTheEntriesItHadBefore) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 7);
  bench.worker(0).Tick(1);
  bench.UntilIdle();
  bench.SetChain({1, 0});
  bench.Publish();
  bench.Until([&] { return bench.Published(); }, "until it has been handed over");
  bench.KillWorker(1);
  bench.Kill(1);
  EXPECT_EQ(bench.ReadAll(table, 1)[0], 7);
}

TEST(Handover, TheNewHeadServesNothingBeforeItHasAll) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  bench.SetChain({1, 0});
  bench.Publish();
  bench.RunFor(absl::Milliseconds(300));
  EXPECT_FALSE(bench.Published());  // the map is not acknowledged before
  EXPECT_FALSE(bench.replica(1, 0)->leads());
  bench.network().HealAll();
  bench.Until([&] { return bench.Published(); }, "until it has been handed over");
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 1);
}

void LetInThirdWorker(ChainBench* bench) {
  bench->AddWorker(/*late=*/true);
  bench->Publish();
  bench->Until([&] { return bench->Published(); }, "until the map is known");
  bench->worker(2).Enter();
  bench->Until([&] { return bench->worker(2).entered().has_value(); }, "until it has entered");
}

TEST(LateWorker, EntersAtTheFastestClockAndIsWaitedFor) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  for (std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(rank == 0 ? 5 : 4);
  bench.UntilIdle();
  LetInThirdWorker(&bench);
  EXPECT_EQ(*bench.worker(2).entered(), 6u);
  bench.worker(2).Tick(6);
  bench.Push(2, table, 6, 0, 9);
  bench.worker(0).Tick(7);
  bench.worker(1).Tick(7);
  const auto read = bench.Pull(0, table, 7, 0);
  bench.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench.worker(0).Answered(read));
  // It counts at the next head as well.
  bench.Kill(0);
  bench.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench.worker(0).Answered(read));
  bench.worker(2).Tick(7);
  bench.UntilIdle();
  EXPECT_THAT(bench.worker(0).ValuesOf(read), Each(9));
}

// The head in between may have answered from later clocks, and the log does not tell of them: the
// one that leads again makes a version for whoever needs a clock, however late its newest one was
// made.
TEST(LeadsAgain, DoesNotGoByTheClockOfTheVersionThatItMade) {
  ChainBench bench({.servers = 2});
  TableSpec spec = TableSpec::Dense("", {ChainBench::kBlocks * ChainBench::kBlock});
  spec.consistency = Consistency::Asp();
  spec.codec = "onebit";
  const std::uint32_t table = bench.Install(spec);
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  for (const std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(100);
  bench.UntilIdle();
  bench.Pull(0, table, 100, 0);  // makes a version
  bench.UntilIdle();
  bench.SetChain({1, 0});
  bench.Publish();
  bench.Until([&] { return bench.Published(); }, "until it has been handed over");
  bench.Push(0, table, 100, 0, 1);
  bench.UntilIdle();
  ShardStore* const store =
      bench.replica(0, proto::ShardOfBlock(table, 0, 2))->shard().stores().at(table).get();
  const auto wants = [&] {
    PullView view;
    view.elements = ChainBench::kBlock;
    view.have = 2;
    return store->WantsVersion(view, {.needed = 100, .slowest = 100, .workers = 2});
  };
  EXPECT_FALSE(wants());
  bench.Kill(1);
  bench.UntilIdle();
  EXPECT_TRUE(wants());
}

// Where the shard that it is handed has been pushed in later clocks, nobody would know.
TEST(LateWorker, IsNotLetInWhileAShardIsBeingHandedOver) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  bench.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
  bench.AddWorker(/*late=*/true);
  bench.SetChain({1, 0});
  bench.Publish();
  bench.worker(2).TakeMap(bench.map);  // sooner than a scheduler tells it
  bench.worker(2).Enter();
  bench.RunFor(absl::Milliseconds(300));
  EXPECT_FALSE(bench.worker(2).entered().has_value());
  bench.network().HealAll();
  bench.Until([&] { return bench.worker(2).entered().has_value(); }, "until it is let in");
}

// A late worker for which shard 0 says clock 10 and shard 1 clock 6.
class ShardsApart : public testing::Test {
 protected:
  ShardsApart() {
    TableSpec means = TableSpec::Dense("", {ChainBench::kBlocks * ChainBench::kBlock});
    means.consistency = Consistency::Bsp();
    means.aggregate = Aggregate::kMean;
    means_ = bench_.Install(means);
    const std::uint32_t counts = bench_.Install(Consistency::Asp());
    bench_.SetChain({0, 1});
    bench_.Publish();
    for (const std::uint32_t rank : {0u, 1u}) bench_.worker(rank).Tick(5);
    bench_.Push(0, counts, 9, BlockIn(0, counts), 1);
    bench_.UntilIdle();
    LetInThirdWorker(&bench_);
  }
  static std::uint64_t BlockIn(std::uint32_t shard, std::uint32_t table) {
    std::uint64_t block = 0;
    while (proto::ShardOfBlock(table, block, 2) != shard) ++block;
    return block;
  }
  ChainBench bench_{{.servers = 2}};
  std::uint32_t means_ = 0;
};

TEST_F(ShardsApart, ALateWorkerBeginsAtTheLatestClockOfAll) {
  EXPECT_EQ(*bench_.worker(2).entered(), 10u);
}

TEST_F(ShardsApart, ALateWorkerHasNoPartInEarlierClocksOfAnyShard) {
  bench_.worker(2).Tick(10);
  const std::uint64_t block = BlockIn(1, means_);
  for (const std::uint32_t rank : {0u, 1u}) bench_.worker(rank).Tick(7);
  bench_.Push(0, means_, 7, block, 8);
  for (const std::uint32_t rank : {0u, 1u}) bench_.worker(rank).Tick(8);
  bench_.UntilIdle();
  const auto read = bench_.Pull(0, means_, 8, block);
  bench_.UntilIdle();
  EXPECT_THAT(bench_.worker(0).ValuesOf(read), Each(4));  // 8 over two workers
}

// The next head hears of it from the log, perhaps before it has heard from it.
TEST(LateWorker, TheNextHeadWaitsForItsFirstIteration) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  for (const std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(5);
  bench.UntilIdle();
  LetInThirdWorker(&bench);
  ASSERT_EQ(*bench.worker(2).entered(), 6u);
  bench.worker(2).Tick(6);
  bench.Push(2, table, 6, 0, 9);
  bench.UntilIdle();
  bench.worker(2).Tick(7);
  bench.UntilIdle();
  bench.Push(0, table, 5, 0, 1);
  for (const std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(6);
  bench.UntilIdle();
  EXPECT_EQ(bench.ReadAll(table, 6)[0], 1);

  bench.network().Cut(ChainBench::WorkerHostOf(2), ChainBench::HostOf(1));
  bench.Kill(0);
  for (const std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(7);
  const auto read = bench.Pull(0, table, 7, 0);
  bench.RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench.worker(0).Answered(read));
  bench.network().HealAll();
  bench.UntilIdle();
  EXPECT_THAT(bench.worker(0).ValuesOf(read), Each(10));
}

// Where nothing is held the log has no clocks, but those of the pushes in it.
TEST(LateWorker, IsNotLetInInThePastByANewHead) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Ssp(2));
  bench.SetChain({0, 1});
  bench.Publish();
  for (std::uint64_t clock = 0; clock < 5; ++clock) {
    for (const std::uint32_t rank : {0u, 1u}) {
      for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
        bench.Push(rank, table, clock, block, 1);
      }
      bench.worker(rank).Tick(clock + 1);
    }
    bench.UntilIdle();
  }
  for (const std::uint32_t rank : {0u, 1u}) {
    bench.network().Cut(ChainBench::WorkerHostOf(rank), ChainBench::HostOf(1));
  }
  bench.Kill(0);
  LetInThirdWorker(&bench);
  EXPECT_GE(*bench.worker(2).entered(), 5u);
  bench.network().HealAll();
  bench.UntilIdle();
}

void ExpectPullsOnceTheSchedulerIsHeard(ChainBench* bench, std::uint32_t table) {
  const auto read = bench->Pull(0, table, 0, 0);
  bench->RunFor(absl::Milliseconds(200));
  EXPECT_FALSE(bench->worker(0).Answered(read));
  bench->thread(0).SetSchedulerHeard(true);
  bench->RunFor(absl::Milliseconds(200));
  EXPECT_TRUE(bench->worker(0).Answered(read));
}

// Others may lead its shards by then, and its reads may be of the past.
TEST(Isolation, AHeadThatHearsNobodyServesNoPulls) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 0);
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.thread(0).SetSchedulerHeard(false);
  bench.RunFor(absl::Seconds(2));
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 1);  // it hears the other replica
  bench.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
  bench.RunFor(absl::Seconds(1));
  ExpectPullsOnceTheSchedulerIsHeard(&bench, table);
}

// What was joining when this one was cut off may be its successor by then.
TEST(Isolation, NeitherDoesOneThatSendsStateToItsFirstReplica) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0});
  bench.Publish();
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 0);
  bench.network().Cut(ChainBench::HostOf(1), ChainBench::HostOf(0));
  bench.SetChain({0}, {1});
  bench.Publish();
  bench.thread(0).SetSchedulerHeard(false);
  bench.RunFor(absl::Seconds(2));
  ExpectPullsOnceTheSchedulerIsHeard(&bench, table);
}

// Nobody else can serve its shards: training goes on while the scheduler is away.
TEST(Isolation, TheOnlyReplicaServesOn) {
  ChainBench bench({.servers = 2});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0});
  bench.Publish();
  bench.thread(0).SetSchedulerHeard(false);
  bench.RunFor(absl::Seconds(2));
  const auto read = bench.Pull(0, table, 0, 0);
  bench.RunFor(absl::Milliseconds(200));
  EXPECT_TRUE(bench.worker(0).Answered(read));
}

TEST(Backpressure, PushesAreRefusedForNowWhenTheLogIsFull) {
  ChainBench::Options options{.servers = 2, .shards = 1};
  options.config = ChainBench::DefaultConfig();
  options.config.replication_log_bytes = 4096;
  ChainBench bench(options);
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  for (int i = 0; i < 100; ++i) bench.Push(0, table, 0, 0, 1);
  bench.RunFor(absl::Milliseconds(100));
  EXPECT_GT(bench.thread(0).counters().unavailable, 0u);
  EXPECT_LT(bench.thread(0).counters().pushes_applied, 50u);
  bench.network().HealAll();
  bench.UntilIdle();
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 101);
}

}  // namespace
}  // namespace leeway::ps
