// A push that a head refused is refused by every later head, whatever was accepted after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/testing/chain_bench.h"

namespace leeway::ps::chain_refusal_test {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint64_t kPushBytes = kRequestOverheadBytes + ChainBench::kBlock * sizeof(float);

// One shard whose head, server 0, has refused a push; its worker has not heard of it, and the head
// has accepted a later push of that worker.
class Refused {
 public:
  // `limited`: what makes it refuse a second push.
  Refused(const Consistency& consistency, const ChainBench::Options& limited)
      : bench_(limited), table_(bench_.Install(consistency)) {}

  void Run(std::vector<std::uint32_t> chain) {
    bench_.SetChain(std::move(chain));
    bench_.Publish();
    bench_.Push(0, table_, 0, 0, 1);
    bench_.UntilIdle();
    bench_.network().Cut(ChainBench::HostOf(0), ChainBench::WorkerHostOf(0));
    push_ = bench_.Push(0, table_, 0, 1, 100);
    bench_.RunFor(absl::Milliseconds(20));
    for (const std::uint32_t rank : {0u, 1u}) bench_.worker(rank).Tick(1);
    bench_.RunFor(absl::Milliseconds(20));
    bench_.Push(0, table_, 1, 0, 2);
    bench_.RunFor(absl::Milliseconds(20));
    for (const std::uint32_t rank : {0u, 1u}) bench_.worker(rank).Tick(2);
    bench_.RunFor(absl::Milliseconds(20));
  }
  void TransferToServerOne() {
    bench_.SetChain({0}, {1});
    bench_.Publish();
    bench_.Until([&] { return !bench_.ready().empty(); }, "until server 1 has the state");
    bench_.SetChain({0, 1});
    bench_.Publish();
    bench_.RunFor(absl::Milliseconds(50));
  }
  void ExpectItStaysRefusedWhenTheHeadDies(absl::string_view setting) {
    ASSERT_FALSE(bench_.worker(0).Answered(push_));
    bench_.Kill(0);
    bench_.network().HealAll();
    bench_.UntilIdle();
    const absl::Status result = bench_.worker(0).ResultOf(push_);
    EXPECT_TRUE(absl::IsResourceExhausted(result)) << result;
    EXPECT_THAT(std::string(result.message()), HasSubstr(setting));
    const auto first = bench_.Pull(0, table_, 2, 0), second = bench_.Pull(0, table_, 2, 1);
    bench_.UntilIdle();
    EXPECT_THAT(bench_.worker(0).ValuesOf(first), Each(3));
    EXPECT_THAT(bench_.worker(0).ValuesOf(second), Each(0));
  }

 private:
  ChainBench bench_;
  const std::uint32_t table_;
  ChainWorker::Key push_;
};

ChainBench::Options HeldLimit() {
  ChainBench::Options options{.servers = 2, .shards = 1};
  options.config.held_bytes_max = kPushBytes;
  return options;
}

ChainBench::Options TableLimit() {
  return {.servers = 2, .shards = 1, .table_bytes_max = {ChainBench::kBlock * sizeof(float), 0}};
}

TEST(ChainRefusal, OfAHeldPushIsKnownToTheNextHead) {
  Refused refused(Consistency::Bsp(), HeldLimit());
  refused.Run({0, 1});
  refused.ExpectItStaysRefusedWhenTheHeadDies("LEEWAY_HELD_BYTES_MAX");
}

TEST(ChainRefusal, OfAPushThatWouldBeAppliedAtOnceIsKnownToTheNextHead) {
  Refused refused(Consistency::Asp(), TableLimit());
  refused.Run({0, 1});
  refused.ExpectItStaysRefusedWhenTheHeadDies("LEEWAY_TABLE_BYTES_MAX");
}

TEST(ChainRefusal, IsKnownToAReplicaThatJoinsAfterwards) {
  for (const bool held : {true, false}) {
    SCOPED_TRACE(held);
    Refused refused(held ? Consistency::Bsp() : Consistency::Asp(),
                    held ? HeldLimit() : TableLimit());
    refused.Run({0});
    refused.TransferToServerOne();
    refused.ExpectItStaysRefusedWhenTheHeadDies(held ? "LEEWAY_HELD_BYTES_MAX"
                                                     : "LEEWAY_TABLE_BYTES_MAX");
  }
}

// The next head has not heard of what came after it, and takes it as a new one.
TEST(ChainRefusal, IsVoidWhereNothingAfterItHasReachedTheNextHead) {
  ChainBench bench(HeldLimit());
  const std::uint32_t table = bench.Install(Consistency::Bsp());
  bench.SetChain({0, 1});
  bench.Publish();
  bench.Push(0, table, 0, 0, 1);
  bench.UntilIdle();
  bench.network().Cut(ChainBench::HostOf(0), ChainBench::WorkerHostOf(0));
  const auto push = bench.Push(0, table, 0, 1, 100);
  bench.RunFor(absl::Milliseconds(20));
  bench.Kill(0);
  bench.network().HealAll();
  bench.UntilIdle();
  EXPECT_TRUE(bench.worker(0).ResultOf(push).ok());
  for (const std::uint32_t rank : {0u, 1u}) bench.worker(rank).Tick(1);
  bench.UntilIdle();
  const auto read = bench.Pull(0, table, 1, 1);
  bench.UntilIdle();
  EXPECT_THAT(bench.worker(0).ValuesOf(read), Each(100));
  EXPECT_TRUE(bench.worker(0).ResultOf(push).ok());
}

}  // namespace leeway::ps::chain_refusal_test
