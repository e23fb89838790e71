// What a data thread does for readers: it answers them at once, and with nothing that is not sure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/encoding/encoding.h"
#include "proto/messages/layout.h"
#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr std::uint64_t kReader = 5000;  // its incarnation

class ReaderTest : public testing::Test {
 protected:
  van::PeerId Come(std::uint64_t cluster = Bench::kCluster) {
    return bench_.ConnectAs(
        {.role = Role::kReader, .node = 1u << 31, .incarnation = kReader, .cluster = cluster});
  }
  // As a reader's core asks: by another worker's numbers, in no order, at clock 0.
  proto::Request Pull(std::uint32_t table, std::uint64_t sequence = 1) {
    // Not DensePull, which takes one of worker 0's own numbers.
    proto::Request pull;
    pull.id = {.incarnation = kReader,
               .sequence = sequence,
               .worker = 0,
               .shard = proto::ShardOfBlock(table, 0, Bench::Options().num_shards)};
    pull.epoch = bench_.map.epoch;
    pull.table = table;
    pull.op = proto::Op::kPull;
    pull.elements = Bench::kBlock;
    return pull;
  }
  // After its turn.
  std::vector<Answer> TakeFrom(van::PeerId reader) {
    bench_.world().RunFor(absl::Milliseconds(1));
    return bench_.TakeFrom(reader);
  }
  Answer Read(van::PeerId reader, std::uint32_t table) {
    bench_.SendFrom(reader, Pull(table));
    std::vector<Answer> answers = TakeFrom(reader);
    EXPECT_EQ(answers.size(), 1u);
    if (answers.size() != 1) return {proto::Reply{.result = absl::InternalError("none")}, {}};
    return answers[0];
  }

  Bench bench_;
};

TEST_F(ReaderTest, SeesAppliedPushesAndTheirClock) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Ssp(1)));
  const van::PeerId reader = Come();
  Answer answer = Read(reader, table);
  ASSERT_TRUE(answer.reply().result.ok()) << answer.reply().result;
  EXPECT_THAT(answer.floats(), Each(0));
  EXPECT_EQ(answer.reply().slowest_clock, 0u);
  const std::uint64_t version = answer.reply().version;
  EXPECT_TRUE(bench_.PushNow(0, table, 0, 2).ok());
  answer = Read(reader, table);
  EXPECT_THAT(answer.floats(), Each(2));
  EXPECT_EQ(answer.reply().version, version + 1);
  bench_.Tick(0, 1);
  EXPECT_EQ(Read(reader, table).reply().slowest_clock, 0u);  // worker 1 is in clock 0
  bench_.Tick(1, 1);
  answer = Read(reader, table);
  EXPECT_EQ(answer.reply().slowest_clock, 1u);
  EXPECT_EQ(answer.reply().version, version + 1);
  EXPECT_EQ(answer.reply().staleness, 0u);
}

// Its pulls alone are served by turns. Tools ask servers, as guests, whose work the van limits.
TEST_F(ReaderTest, ThatAsksForTheStatusIsDropped) {
  const van::PeerId reader = Come();
  bench_.SendFrom(reader, proto::StatusRequest{1});
  EXPECT_TRUE(bench_.van().Dropped(reader).has_value());
}

TEST_F(ReaderTest, InBspSeesClosedClocksOnlyAndDoesNotWait) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Bsp()));
  const van::PeerId reader = Come();
  EXPECT_TRUE(bench_.PushNow(0, table, 0, 2).ok());
  bench_.Tick(0, 1);
  // A pull of clock 1 waits for worker 1; a reader's does not.
  bench_.Send(0, bench_.DensePull(0, table, 1));
  Answer answer = Read(reader, table);
  EXPECT_THAT(answer.floats(), Each(0));
  EXPECT_EQ(answer.reply().slowest_clock, 0u);
  bench_.Take(0);
  EXPECT_TRUE(bench_.PushNow(1, table, 0, 3).ok());
  bench_.Tick(1, 1);
  answer = Read(reader, table);
  EXPECT_THAT(answer.floats(), Each(5));
  EXPECT_EQ(answer.reply().slowest_clock, 1u);
}

TEST_F(ReaderTest, IsNotWaitedFor) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Bsp()));
  const van::PeerId reader = Come();
  Read(reader, table);
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    for (const std::uint32_t rank : {0u, 1u}) bench_.Tick(rank, clock + 1);
  }
  EXPECT_TRUE(bench_.PullNow(0, table, 3).size() == Bench::kBlock);
}

TEST_F(ReaderTest, ThatPushesOrTicksIsDropped) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  proto::Request push = Pull(table);
  push.op = proto::Op::kPush;
  push.elements = Bench::kBlock;
  const van::PeerId pusher = Come();
  bench_.SendFrom(pusher, push, Bench::Filled(7));
  ASSERT_TRUE(bench_.van().Dropped(pusher).has_value());
  EXPECT_THAT(std::string(bench_.van().Dropped(pusher)->message()), HasSubstr("LEEWAY_READ_ONLY"));
  const van::PeerId ticker = Come();
  bench_.SendFrom(ticker, proto::ClockTick{.incarnation = kReader, .epoch = 1, .clock = 5});
  EXPECT_TRUE(bench_.van().Dropped(ticker).has_value());
  const van::PeerId caller = Come();
  bench_.SendFrom(caller, proto::Call{.request = 1, .handler = "x"}, Bench::Keys({1}));
  EXPECT_TRUE(bench_.van().Dropped(caller).has_value());
  EXPECT_THAT(bench_.PullNow(0, table, 0), Each(0));
}

TEST_F(ReaderTest, OfAnotherClusterOrInAnothersNameIsDropped) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  const van::PeerId stranger = Come(Bench::kCluster + 1);
  bench_.SendFrom(stranger, Pull(table));
  EXPECT_TRUE(bench_.van().Dropped(stranger).has_value());
  const van::PeerId impostor = Come();
  proto::Request pull = Pull(table);
  pull.id.incarnation = Bench::IncarnationOf(0);
  bench_.SendFrom(impostor, pull);
  EXPECT_TRUE(bench_.van().Dropped(impostor).has_value());
}

TEST_F(ReaderTest, OfAnOldEpochHasToTakeTheNewMap) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  const van::PeerId reader = Come();
  proto::Request pull = Pull(table);
  --pull.epoch;
  bench_.SendFrom(reader, pull);
  const std::vector<Answer> answers = TakeFrom(reader);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(absl::IsAborted(answers[0].reply().result) ||
              absl::IsUnavailable(answers[0].reply().result));
}

TEST_F(ReaderTest, IsServedAfterWorkersThoughItAskedFirst) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  const van::PeerId reader = Come();
  constexpr std::uint64_t kRequests = 1000;
  for (std::uint64_t i = 1; i <= kRequests; ++i) bench_.SendFrom(reader, Pull(table, i));
  EXPECT_TRUE(bench_.PushNow(0, table, 0, 2).ok());
  EXPECT_TRUE(bench_.TakeFrom(reader).empty());
  // Nothing more is read of one of which so many wait.
  EXPECT_EQ(bench_.van().held().count(reader), 1u);
  const std::vector<Answer> answers = TakeFrom(reader);
  ASSERT_EQ(answers.size(), kRequests);
  for (const Answer& answer : answers) EXPECT_THAT(answer.floats(), Each(2));
  EXPECT_EQ(bench_.van().held().count(reader), 0u);
}

TEST_F(ReaderTest, ThatGoesWhileItsRequestsWaitIsForgotten) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  const van::PeerId reader = Come();
  for (std::uint64_t i = 1; i <= 100; ++i) bench_.SendFrom(reader, Pull(table, i));
  bench_.van().handler()->OnPeerDown(reader, absl::OkStatus());
  EXPECT_TRUE(TakeFrom(reader).empty());
  EXPECT_EQ(bench_.counters().reads_served, 0u);
}

// An error tape: nothing of a reader stays when it has gone.
TEST_F(ReaderTest, LeavesNothingBehind) {
  const std::uint32_t table = bench_.Install(AddTable("w", Consistency::Asp()));
  EXPECT_TRUE(bench_.PushNow(0, table, 0, 2).ok());
  const std::string before = bench_.thread().StatusJson();
  for (int visit = 0; visit < 100; ++visit) {
    const van::PeerId reader = bench_.ConnectAs({.role = Role::kReader,
                                                 .node = (1u << 31) + visit,
                                                 .incarnation = kReader,
                                                 .cluster = Bench::kCluster});
    EXPECT_THAT(Read(reader, table).floats(), Each(2));
    bench_.van().handler()->OnPeerDown(reader, absl::OkStatus());
  }
  EXPECT_EQ(bench_.counters().reads_served, 100u);
  EXPECT_THAT(bench_.PullNow(1, table, 0), Each(2));
}

}  // namespace
}  // namespace leeway::ps
