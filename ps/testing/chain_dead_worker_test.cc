// A worker that dies within its iteration while its shard is handed over: the new head discards
// what the old head, which had not heard of the death, hands over of it.
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

}  // namespace
}  // namespace leeway::ps
