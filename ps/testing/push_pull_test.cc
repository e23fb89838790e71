// A push-pull takes effect whole or not at all; where its pull fails after its push, it says so.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/data/data_thread.h"
#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using ::absl::StatusCode;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::uint64_t kPushBytes = kRequestOverheadBytes + Bench::kBlock * sizeof(float);

proto::Request DensePushPull(Bench* bench, std::uint32_t table, std::uint64_t clock) {
  proto::Request request = bench->DensePush(0, table, clock);
  request.op = proto::Op::kPushPull;
  return request;
}

TEST(PushPull, APullThatCannotWaitRefusesThePushInSsp) {
  Bench bench({.held_bytes_max = kRequestOverheadBytes - 1});
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Ssp(1)));
  bench.Tick(0, 3);
  bench.Take(0);
  const proto::Request refused = DensePushPull(&bench, table, 3);
  for (int times = 0; times < 2; ++times) {  // sent again it is told the same
    bench.Send(0, refused, Bench::Filled(7));
    const absl::Status result = bench.TakeReply(0).reply().result;
    EXPECT_EQ(result.code(), StatusCode::kResourceExhausted) << result;
    EXPECT_THAT(std::string(result.message()), HasSubstr("LEEWAY_HELD_BYTES_MAX"));
  }
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(0));
  EXPECT_EQ(bench.counters().pushes_applied, 0u);
  // Pushed again where it need not wait, it is there once.
  bench.Tick(1, 3);
  bench.Take(1);
  bench.Send(0, DensePushPull(&bench, table, 3), Bench::Filled(7));
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  EXPECT_THAT(bench.PullNow(1, table, 3), Each(7));
}

TEST(PushPull, APullThatCannotWaitRefusesThePushInBsp) {
  Bench bench({.held_bytes_max = kPushBytes + kRequestOverheadBytes - 1});
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Send(0, DensePushPull(&bench, table, 0), Bench::Filled(7));
  EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(bench.PushNow(1, table, 0, 1).ok());  // what was refused takes no room
  bench.Tick(0, 1);
  bench.Tick(1, 1);
  bench.Take(0);
  bench.Take(1);
  EXPECT_THAT(bench.PullNow(1, table, 1), Each(1));
}

TEST(PushPull, WithRoomForBothItIsHeld) {
  Bench bench({.held_bytes_max = kPushBytes + kRequestOverheadBytes});
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Send(0, DensePushPull(&bench, table, 0), Bench::Filled(7));
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(0, 1);
  bench.Tick(1, 1);
  const Answer answer = bench.TakeReply(0);
  EXPECT_TRUE(answer.reply().result.ok()) << answer.reply().result;
  EXPECT_THAT(answer.floats(), Each(7));
}

TEST(PushPull, AnAnswerThatCannotBeSentSaysThatThePushWasTaken) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Asp()));
  bench.van().message_bytes_max = 8;
  bench.Send(0, DensePushPull(&bench, table, 0), Bench::Filled(7));
  const absl::Status result = bench.TakeReply(0).reply().result;
  EXPECT_EQ(result.code(), StatusCode::kUnknown) << result;
  EXPECT_EQ(bench.counters().pushes_applied, 1u);
}

}  // namespace
}  // namespace leeway::ps
