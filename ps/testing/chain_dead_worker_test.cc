// Workers that are dead, or gone, when another server gets their shard: by a handover, at which the
// new head discards what a dead one gave to the iteration that it had not ended, and counts it in
// means of those that it had; or by a state transfer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ps/testing/chain_bench.h"

namespace leeway::ps {
namespace {

class ChainDeadWorker : public ::testing::Test {
 protected:
  // Clock 0 is whole; in clock 1 worker 1 pushes, and does not end it.
  void SetUp() override {
    table_ = bench_.Install(Consistency::Bsp());
    bench_.SetChain({0, 1});
    bench_.Publish();
    for (std::uint32_t rank : {0u, 1u}) {
      bench_.Push(rank, table_, 0, 0, rank == 0 ? 10 : 1);
      bench_.worker(rank).Tick(1);
    }
    bench_.UntilIdle();
    bench_.Push(1, table_, 1, 0, 1);
    bench_.Push(0, table_, 1, 0, 10);
    bench_.RunFor(absl::Milliseconds(20));
  }

  void Die() {
    bench_.KillWorker(1);
    bench_.Publish();
    bench_.RunFor(absl::Milliseconds(5));
  }
  void HandOver() {
    bench_.SetChain({1, 0});
    bench_.Publish();
    bench_.RunFor(absl::Milliseconds(5));
  }
  float ValueAfterClock1() {
    bench_.Until([&] { return bench_.Published(); }, "handed over");
    bench_.worker(0).Tick(2);
    return bench_.ReadAll(table_, 2)[0];
  }

  ChainBench bench_{{.servers = 2, .shards = 1}};
  std::uint32_t table_ = 0;
};

TEST_F(ChainDeadWorker, DeathBeforeTheHandover) {
  Die();
  HandOver();
  EXPECT_EQ(ValueAfterClock1(), 21);
}

TEST_F(ChainDeadWorker, DeathDuringTheHandover) {
  const std::string from = ChainBench::HostOf(0), to = ChainBench::HostOf(1);
  bench_.network().Cut(from, to);
  bench_.network().Cut(to, from);
  HandOver();
  Die();
  bench_.network().Heal(from, to);
  bench_.network().Heal(to, from);
  EXPECT_EQ(ValueAfterClock1(), 21);
}

// A worker that is gone had ended the open clock, without a push to the block: it counts in the
// mean, whichever server closes the clock.
class MeanOfTheGone : public ::testing::Test {
 protected:
  void SetUp() override {
    TableSpec means = TableSpec::Dense("", {ChainBench::kBlocks * ChainBench::kBlock});
    means.consistency = Consistency::Bsp();
    means.aggregate = Aggregate::kMean;
    table_ = bench_.Install(means);
    bench_.SetChain({0, 1});
    bench_.Publish();
    bench_.worker(1).Tick(1);
    bench_.UntilIdle();
    bench_.KillWorker(1);
  }
  float ValueAfterAHandover() {
    bench_.Publish();
    bench_.Push(0, table_, 0, 0, 20);
    bench_.UntilIdle();
    bench_.SetChain({1, 0});
    bench_.Publish();
    bench_.Until([&] { return bench_.Published(); }, "handed over");
    bench_.worker(0).Tick(1);
    const float value = bench_.ReadAll(table_, 1)[0];
    bench_.UntilIdle();
    bench_.ExpectReplicasEqual();
    return value;
  }

  ChainBench bench_{{.servers = 2, .shards = 1}};
  std::uint32_t table_ = 0;
};

TEST_F(MeanOfTheGone, CountsTheDead) { EXPECT_EQ(ValueAfterAHandover(), 10); }

TEST_F(MeanOfTheGone, CountsThoseThatLeft) {
  bench_.map.workers[1].state = proto::WorkerState::kLeft;
  EXPECT_EQ(ValueAfterAHandover(), 10);
}

TEST_F(MeanOfTheGone, CountsTheDeadWhoseRankAnotherHas) {
  bench_.Publish();
  bench_.map.workers[1].incarnation = 5000;
  bench_.map.workers[1].late = true;
  bench_.map.workers[1].state = proto::WorkerState::kAlive;
  EXPECT_EQ(ValueAfterAHandover(), 10);
}

// A replica that joins while a worker counts as dead knows what that worker has pushed: it may come
// back, and send again what was not answered.
TEST(TransferWithADeadWorker, ResentPushesCountOnce) {
  ChainBench bench({.servers = 2, .shards = 1});
  const std::uint32_t table = bench.Install(Consistency::Asp());
  bench.SetChain({0});
  bench.Publish();
  bench.Push(1, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::WorkerHostOf(1));
  bench.Push(1, table, 0, 0, 5);
  bench.RunFor(absl::Milliseconds(20));
  ASSERT_EQ(bench.replica(0, 0)->shard().index(), 2u);
  bench.map.workers[1].state = proto::WorkerState::kDead;
  bench.SetChain({0}, {1});
  bench.Publish();
  bench.Until([&] { return bench.ready().contains(0); }, "joined");
  bench.SetChain({0, 1});
  bench.Publish();
  bench.RunFor(absl::Milliseconds(100));
  bench.map.workers[1].state = proto::WorkerState::kAlive;
  bench.Kill(0);
  bench.network().HealAll();
  bench.UntilIdle();
  EXPECT_EQ(bench.ReadAll(table, 0)[0], 6);
}

}  // namespace
}  // namespace leeway::ps
