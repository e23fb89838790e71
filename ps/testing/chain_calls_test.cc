// Calls of a shard handler, through deaths of heads, state transfers and lost answers: each takes
// effect once, and every head gives it the same answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "leeway/shard_handler.h"
#include "ps/testing/chain_bench.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps::chain_calls_test {

using ::testing::Each;

// Adds 1 to all elements of the block that the request names, and tells what they were before. "x"
// behind it: fails in the end.
absl::StatusOr<std::string> AddOne(ShardCall& call) {
  const std::uint64_t block = call.request()[0] - '0';
  std::vector<float> values(ChainBench::kBlock);
  LEEWAY_RETURN_IF_ERROR(call.ReadBlock(call.table(), block, std::span(values)));
  const std::vector<float> ones(ChainBench::kBlock, 1);
  LEEWAY_RETURN_IF_ERROR(call.PushBlock(call.table(), block, std::span<const float>(ones)));
  if (call.request().size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat("it is ", values[0]));
  }
  return absl::StrCat(values[0]);
}

class ChainCalls : public ::testing::Test {
 protected:
  explicit ChainCalls(const Consistency& consistency = Consistency::Asp())
      : table_(bench_.Install(consistency)) {
    (void)RegisterShardHandler("add one", AddOne);
  }
  void SetChain(std::vector<std::uint32_t> members, std::vector<std::uint32_t> joining = {}) {
    bench_.SetChain(std::move(members), std::move(joining));
    bench_.Publish();
  }
  ChainWorker::Key Call(const std::string& request) {
    return bench_.Call(0, table_, 0, "add one", request);
  }
  // The worker hears nothing of it.
  ChainWorker::Key CallWithoutAnswer(const std::string& request) {
    bench_.network().Cut(ChainBench::HostOf(0), ChainBench::WorkerHostOf(0));
    const ChainWorker::Key key = Call(request);
    bench_.RunFor(absl::Milliseconds(50));
    EXPECT_FALSE(bench_.worker(0).Answered(key));
    return key;
  }
  std::string AnswerTo(const ChainWorker::Key& key) {
    const absl::Status result = bench_.worker(0).ResultOf(key);
    return result.ok() ? bench_.worker(0).AnswerOf(key) : std::string(result.message());
  }
  void ExpectBlock(float value) {
    const auto read = bench_.Pull(0, table_, 0, 0);
    bench_.UntilIdle();
    EXPECT_THAT(bench_.worker(0).ValuesOf(read), Each(value));
  }

  ChainBench bench_{{.servers = 3, .shards = 1}};
  const std::uint32_t table_;
};

TEST_F(ChainCalls, TakeEffectOnAllReplicas) {
  SetChain({0, 1, 2});
  for (int i = 0; i < 3; ++i) {
    const auto key = Call("0");
    bench_.UntilIdle();
    EXPECT_EQ(AnswerTo(key), std::to_string(i));
  }
  bench_.ExpectReplicasEqual();
  ExpectBlock(3);
}

TEST_F(ChainCalls, AreAnsweredOnlyWhenAllReplicasHaveTheirEffects) {
  SetChain({0, 1});
  ExpectBlock(0);
  bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  const auto key = Call("0"), failing = Call("0x");
  bench_.RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(bench_.worker(0).Answered(key));
  EXPECT_FALSE(bench_.worker(0).Answered(failing));  // it has seen what may still be undone
  bench_.network().HealAll();
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(key), "0");
  EXPECT_EQ(AnswerTo(failing), "it is 1");
}

TEST_F(ChainCalls, AreAnsweredAlikeByTheNextHead) {
  SetChain({0, 1});
  ExpectBlock(0);
  const auto key = CallWithoutAnswer("0"), failed = CallWithoutAnswer("0x");
  bench_.Kill(0);
  bench_.network().HealAll();
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(key), "0");
  EXPECT_EQ(AnswerTo(failed), "it is 1");
  ExpectBlock(1);
  const auto next = Call("0");
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(next), "1");
}

TEST_F(ChainCalls, AreAnsweredAlikeByAReplicaThatGotTheState) {
  SetChain({0});
  ExpectBlock(0);
  const auto key = CallWithoutAnswer("0"), failed = CallWithoutAnswer("0x");
  SetChain({0}, {1});
  bench_.Until([&] { return !bench_.ready().empty(); }, "until server 1 has the state");
  SetChain({0, 1});
  bench_.RunFor(absl::Milliseconds(50));
  bench_.Kill(0);
  bench_.network().HealAll();
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(key), "0");
  EXPECT_EQ(AnswerTo(failed), "it is 1");
  ExpectBlock(1);
}

// What the log says of a worker with each clock is up to which number its requests are in.
TEST_F(ChainCalls, ThatFailedAreNotForgottenWhenAClockCloses) {
  const std::uint32_t held = bench_.Install(Consistency::Bsp());
  SetChain({0, 1});
  ExpectBlock(0);
  bench_.Push(1, held, 0, 0, 1);
  const auto failed = CallWithoutAnswer("0x");
  for (const std::uint32_t rank : {0u, 1u}) bench_.worker(rank).Tick(1);
  bench_.RunFor(absl::Milliseconds(50));
  EXPECT_EQ(bench_.replica(1, 0)->shard().closed(), 1u);
  bench_.Kill(0);
  bench_.network().HealAll();
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(failed), "it is 0");
}

TEST_F(ChainCalls, RunAgainAtTheNextHeadWhereTheFirstHasDiedWithTheirEffects) {
  SetChain({0, 1});
  ExpectBlock(0);
  bench_.network().Cut(ChainBench::HostOf(0), ChainBench::HostOf(1));
  const auto lost = Call("0");
  bench_.RunFor(absl::Milliseconds(50));
  bench_.Kill(0);
  bench_.network().HealAll();
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(lost), "0");
  ExpectBlock(1);
}

TEST_F(ChainCalls, AreInOrderWithPushesOfTheirWorker) {
  SetChain({0, 1});
  bench_.Push(0, table_, 0, 0, 5);
  const auto key = Call("0");
  bench_.Push(0, table_, 0, 0, 5);
  const auto next = Call("0");
  bench_.UntilIdle();
  EXPECT_EQ(AnswerTo(key), "5");
  EXPECT_EQ(AnswerTo(next), "11");
}

// The head is killed at each moment of three calls' life.
TEST_F(ChainCalls, TakeEffectOnceWheneverTheHeadDies) {
  for (int us = 0; us < 4000; us += 50) {
    ChainBench bench({.seed = static_cast<std::uint64_t>(1 + us), .servers = 3, .shards = 1});
    const std::uint32_t table = bench.Install(Consistency::Ssp(1));
    bench.SetChain({0, 1});
    bench.Publish();
    bench.Pull(0, table, 0, 0);
    bench.UntilIdle();
    std::vector<ChainWorker::Key> keys;
    for (int i = 0; i < 3; ++i) keys.push_back(bench.Call(0, table, 0, "add one", "0"));
    bench.RunFor(absl::Microseconds(us));
    bench.Kill(0);
    bench.UntilIdle();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(bench.worker(0).ResultOf(keys[i]).ok()) << us << " us";
      ASSERT_EQ(bench.worker(0).AnswerOf(keys[i]), std::to_string(i)) << us << " us";
    }
    const auto read = bench.Pull(0, table, 0, 0);
    bench.UntilIdle();
    ASSERT_THAT(bench.worker(0).ValuesOf(read), Each(3)) << us << " us";
  }
}

// A replica gets the state while calls are made, and the head dies when it is a member.
TEST_F(ChainCalls, TakeEffectOnceThoughAReplicaJoinsAtAnyMoment) {
  for (int us = 0; us < 3000; us += 100) {
    ChainBench bench({.seed = static_cast<std::uint64_t>(1 + us), .servers = 2, .shards = 1});
    const std::uint32_t table = bench.Install(Consistency::Asp());
    bench.SetChain({0});
    bench.Publish();
    for (std::uint64_t block = 0; block < ChainBench::kBlocks; ++block) {
      bench.Push(0, table, 0, block, 0);
    }
    bench.UntilIdle();
    bench.SetChain({0}, {1});
    bench.Publish();
    bench.RunFor(absl::Microseconds(us));
    std::vector<ChainWorker::Key> keys;
    for (int i = 0; i < 20; ++i) {
      keys.push_back(bench.Call(0, table, 0, "add one", "0"));
      bench.RunFor(absl::Microseconds(20));
    }
    bench.Until([&] { return !bench.ready().empty(); }, "until server 1 has the state");
    bench.SetChain({0, 1});
    bench.Publish();
    bench.UntilIdle();
    bench.ExpectReplicasEqual();
    bench.Kill(0);
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(bench.worker(0).AnswerOf(keys[i]), std::to_string(i)) << us << " us";
    }
    const auto read = bench.Pull(0, table, 0, 0);
    bench.UntilIdle();
    ASSERT_THAT(bench.worker(0).ValuesOf(read), Each(20)) << us << " us";
  }
}

}  // namespace leeway::ps::chain_calls_test
