// Clocks: what is held, what is let go and in which order, and what a wait that fails says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using absl::StatusCode;
using testing::Each;
using testing::HasSubstr;

TEST(Ticks, AreAcknowledgedOnceTheirWatermarksHaveBeenAdmitted) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Asp()));
  const proto::Request push = bench.DensePush(0, table, 0);
  bench.Tick(0, 1);
  EXPECT_TRUE(bench.Take(0).empty());
  bench.Send(0, push, Bench::Filled(1));
  const std::vector<Answer> answers = bench.Take(0);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::get<proto::ClockAck>(answers[1].message).clock, 1u);
  bench.Tick(0, 1);  // again
  EXPECT_EQ(std::get<proto::ClockAck>(bench.Take(0).at(0).message).clock, 1u);
}

TEST(Ticks, AreCumulative) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Tick(1, 3);
  const proto::Request first = bench.DensePush(0, table, 0);
  bench.Tick(0, 1);
  const proto::Request second = bench.DensePush(0, table, 1);
  bench.Tick(0, 2);
  bench.Tick(0, 1);  // late
  bench.Send(0, second, Bench::Filled(10));
  bench.Send(0, first, Bench::Filled(1));
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 2), Each(11));
  EXPECT_EQ(bench.counters().clocks_closed, 2u);
}

TEST(Ticks, CountInAShardOnceItsOwnWatermarkIsReached) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 2, /*block=*/0).ok());
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1, /*block=*/0).ok());
  const proto::Request missing = bench.DensePush(0, table, 0, /*block=*/1);
  bench.Tick(1, 1);
  bench.Take(1);
  bench.Tick(0, 1);
  EXPECT_TRUE(bench.Take(0).empty());  // not all shards have it
  EXPECT_THAT(bench.PullNow(1, table, 1, /*block=*/0), Each(3));
  bench.Send(1, bench.DensePull(1, table, 1, /*block=*/1));
  EXPECT_FALSE(bench.GotReply(1));
  bench.Send(0, missing, Bench::Filled(5));
  EXPECT_THAT(bench.TakeReply(1).floats(), Each(5));
  const std::vector<Answer> answers = bench.Take(0);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(std::get<proto::ClockAck>(answers[1].message).clock, 1u);
}

TEST(Ticks, ThatMakeNoSenseDropTheirSender) {
  Bench bench;
  bench.Send(0, proto::ClockTick{.worker = 0, .incarnation = 1000, .epoch = 1, .clock = kClockMax});
  EXPECT_TRUE(bench.van().Dropped(bench.PeerOf(0)).has_value());
  bench.Send(1, proto::ClockTick{.worker = 1,
                                 .incarnation = 1001,
                                 .epoch = 1,
                                 .clock = 1,
                                 .watermarks = {{.sequence = 1, .shard = 55}}});
  EXPECT_TRUE(bench.van().Dropped(bench.PeerOf(1)).has_value());
}

TEST(Ticks, OfAnotherEpochWaitToBeSentAgain) {
  Bench bench;
  bench.Send(0, proto::ClockTick{.worker = 0, .incarnation = 1000, .epoch = 9, .clock = 1});
  EXPECT_TRUE(bench.Take(0).empty());
  bench.Tick(0, 1);
  EXPECT_EQ(bench.Take(0).size(), 1u);
}

TEST(Bsp, PushesShowWhenTheClockCloses) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  EXPECT_TRUE(bench.PushNow(1, table, 0, 2).ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(0));
  bench.Tick(0, 1);
  bench.Send(0, bench.DensePull(0, table, 1));
  EXPECT_FALSE(bench.GotReply(0));
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(0));
  bench.Tick(1, 1);
  const Answer answer = bench.TakeReply(0);
  EXPECT_THAT(answer.floats(), Each(3));
  EXPECT_EQ(answer.reply().staleness, 0u);
  EXPECT_EQ(answer.reply().slowest_clock, 1u);
  EXPECT_EQ(answer.reply().clock, 1u);
}

TEST(Bsp, PushPullShowsItsOwnClockClosed) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  proto::Request request = bench.DensePush(0, table, 0);
  request.op = proto::Op::kPushPull;
  bench.Send(0, request, Bench::Filled(1));
  bench.Send(0, request, Bench::Filled(1));  // again, while it is held
  bench.Tick(0, 1);
  EXPECT_TRUE(bench.PushNow(1, table, 0, 5).ok());
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(1, 1);
  const Answer answer = bench.TakeReply(0);
  EXPECT_THAT(answer.floats(), Each(6));
  EXPECT_EQ(answer.reply().staleness, 0u);
}

TEST(Bsp, APullSeesItsClockEvenWhenTheSlowestJumpsPastIt) {
  Bench bench({.num_workers = 3});
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    for (std::uint32_t rank : {0u, 1u}) {
      EXPECT_TRUE(bench.PushNow(rank, table, clock, 1).ok());
      bench.Tick(rank, clock + 1);
    }
    bench.Send(0, bench.DensePull(0, table, clock + 1));
  }
  bench.Take(1);
  bench.SetState(2, proto::WorkerState::kDead);  // clocks 0, 1 and 2 close at once
  std::vector<Answer> answers = bench.Take(0);
  std::erase_if(answers, [](const Answer& answer) {
    return !std::holds_alternative<proto::Reply>(answer.message);
  });
  ASSERT_EQ(answers.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(answers[i].floats(), Each(2.0f * static_cast<float>(i + 1)));
  }
}

// The sum of these depends on the order of additions.
float Awkward(std::uint32_t rank, std::size_t i) {
  return std::ldexp(1.0f + 0.37f * static_cast<float>(rank) + 0.01f * static_cast<float>(i),
                    static_cast<int>(7 * rank % 23) - 10);
}

std::vector<float> RunInOrder(const std::vector<std::uint32_t>& order) {
  Bench bench({.num_workers = static_cast<std::uint32_t>(order.size())});
  TableSpec spec = AddTable("w", Consistency::Bsp());
  spec.updater = {.name = "sgd", .parameters = {{"learning_rate", 0.3}}};
  const std::uint32_t table = bench.Install(spec);
  for (std::uint64_t clock = 0; clock < 3; ++clock) {
    for (std::uint32_t rank : order) {
      for (int push = 0; push < 2; ++push) {
        std::vector<float> values(Bench::kBlock);
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = Awkward(rank + static_cast<std::uint32_t>(push), i + clock);
        }
        bench.Send(rank, bench.DensePush(rank, table, clock), Bench::Values(values));
      }
      bench.Tick(rank, clock + 1);
      bench.Take(rank);
    }
  }
  return bench.PullNow(0, table, 3);
}

TEST(Bsp, TheOrderOfContributionsDoesNotChangeTheBits) {
  const std::vector<float> reference = RunInOrder({0, 1, 2, 3, 4});
  std::vector<std::uint32_t> order = {0, 1, 2, 3, 4};
  while (std::next_permutation(order.begin(), order.end())) {
    ASSERT_EQ(RunInOrder(order), reference);
  }
}

TEST(Bsp, TheMeanIsOverWorkersThatTookPart) {
  Bench bench({.num_workers = 4});
  TableSpec spec = AddTable("w", Consistency::Bsp());
  spec.aggregate = Aggregate::kMean;
  const std::uint32_t table = bench.Install(spec);
  EXPECT_TRUE(bench.PushNow(0, table, 0, 8).ok());
  EXPECT_TRUE(bench.PushNow(1, table, 0, 4).ok());
  for (std::uint32_t rank : {0u, 1u, 2u, 3u}) bench.Tick(rank, 1);
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 1), Each(3));  // 12 over four workers
  // One gives and leaves, one leaves without giving.
  EXPECT_TRUE(bench.PushNow(1, table, 1, 9).ok());
  bench.SetState(1, proto::WorkerState::kLeft);
  bench.SetState(2, proto::WorkerState::kLeft);
  for (std::uint32_t rank : {0u, 3u}) bench.Tick(rank, 2);
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 2), Each(3 + 9 / 3));
}

// A worker that ended the clock and died counts in its mean, also if another process has its rank
// by the time the clock closes.
TEST(Bsp, TheMeanCountsEachIncarnationOfARank) {
  for (const bool pushed : {true, false}) {
    SCOPED_TRACE(pushed);
    Bench bench;
    TableSpec spec = AddTable("w", Consistency::Bsp());
    spec.aggregate = Aggregate::kMean;
    const std::uint32_t table = bench.Install(spec);
    if (pushed) {
      EXPECT_TRUE(bench.PushNow(1, table, 0, 10).ok());
    }
    bench.Tick(1, 1);
    bench.SetState(1, proto::WorkerState::kDead);
    bench.map.workers[1].incarnation = 5000;
    bench.map.workers[1].late = true;
    bench.SetState(1, proto::WorkerState::kAlive);
    EXPECT_TRUE(bench.PushNow(0, table, 0, 20).ok());
    bench.Tick(0, 1);
    bench.Take(0);
    EXPECT_THAT(bench.PullNow(0, table, 1), Each(pushed ? 15 : 10));
  }
}

TEST(Bsp, ADeadWorkersPushesToItsOpenClockAreDiscarded) {
  Bench bench({.num_workers = 3});
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  EXPECT_TRUE(bench.PushNow(2, table, 0, 100).ok());
  bench.Tick(2, 1);
  bench.Take(2);
  EXPECT_TRUE(bench.PushNow(2, table, 1, 1000).ok());
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  bench.Tick(0, 2);
  bench.Send(0, bench.DensePull(0, table, 2));
  bench.Tick(1, 2);
  EXPECT_FALSE(bench.GotReply(0));
  bench.SetState(2, proto::WorkerState::kDead);
  // Clock 0 was ended by it and counts; clock 1 was not.
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(101));
  EXPECT_EQ(bench.counters().pushes_discarded, 1u);
}

TEST(Bsp, ALeavingWorkersPushesCount) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 7).ok());
  bench.Tick(0, 1);
  bench.Send(0, bench.DensePull(0, table, 1));
  EXPECT_FALSE(bench.GotReply(0));
  bench.SetState(1, proto::WorkerState::kLeft);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(7));
}

TEST(Bsp, AWorkerThatComesBackCountsInTheOpenClock) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.SetState(1, proto::WorkerState::kDead);
  bench.Tick(0, 3);
  bench.Take(0);
  bench.SetState(1, proto::WorkerState::kAlive);
  EXPECT_TRUE(bench.PushNow(1, table, 0, 5).ok());
  EXPECT_EQ(bench.counters().late_pushes, 1u);
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(0));
  bench.Tick(0, 4);
  bench.Send(0, bench.DensePull(0, table, 4));
  EXPECT_FALSE(bench.GotReply(0));  // it is waited for again
  bench.Tick(1, 4);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(5));
}

proto::Request RaggedPush(Bench& bench, std::uint32_t rank, std::uint32_t table,
                          std::vector<std::uint64_t> keys, std::uint32_t width) {
  proto::Request push = bench.SparsePull(rank, table, 0, 0, keys.size());
  push.op = proto::Op::kPush;
  push.kind = TableKind::kRagged;
  push.elements = keys.size() * width;
  Payload payload = Bench::Keys(keys);
  const std::vector<std::uint32_t> widths(keys.size(), width);
  payload.push_back(runtime::Buffer::CopyOf(widths.data(), widths.size() * sizeof(width)));
  payload.push_back(Bench::Values(std::vector<float>(push.elements, rank + 1.0f))[0]);
  bench.Send(rank, push, std::move(payload));
  return push;
}

// Each fits by itself: the row is new. The one of the lower rank counts.
TEST(Bsp, OfTwoWidthsOfANewRowOneIsLeftOutAlone) {
  Bench bench({.num_workers = 3, .num_shards = 1});
  TableSpec spec = TableSpec::Ragged("lists");
  spec.consistency = Consistency::Bsp();
  const std::uint32_t lists = bench.Install(spec);
  RaggedPush(bench, 1, lists, {7, 8}, 3);
  RaggedPush(bench, 0, lists, {1, 7}, 2);
  RaggedPush(bench, 2, lists, {1, 9}, 2);
  for (std::uint32_t rank : {0u, 1u, 2u}) {
    EXPECT_TRUE(bench.TakeReply(rank).reply().result.ok());
    bench.Tick(rank, 1);
    bench.Take(rank);
  }
  EXPECT_EQ(bench.counters().apply_failures, 1u);
  EXPECT_EQ(bench.counters().pushes_applied, 2u);
  proto::Request pull = bench.SparsePull(0, lists, 1, 0, 4);
  pull.kind = TableKind::kRagged;
  bench.Send(0, pull, Bench::Keys({1, 7, 8, 9}));
  EXPECT_THAT(bench.TakeReply(0).floats(), testing::ElementsAre(4, 4, 1, 1, 3, 3));
}

// When its clock closes it would be too late: its worker has been told that it was accepted.
TEST(Bsp, APushOfAnotherWidthThanItsRowIsRefusedAtOnce) {
  Bench bench({.num_workers = 1, .num_shards = 1});
  TableSpec spec = TableSpec::Ragged("lists");
  spec.consistency = Consistency::Bsp();
  const std::uint32_t lists = bench.Install(spec);
  RaggedPush(bench, 0, lists, {7}, 3);
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  bench.Tick(0, 1);
  bench.Take(0);
  RaggedPush(bench, 0, lists, {7}, 2);
  EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kInvalidArgument);
}

TEST(Bsp, HeldBytesHaveALimit) {
  Bench bench({.held_bytes_max = 3 * (kRequestOverheadBytes + Bench::kBlock * sizeof(float))});
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  const absl::Status full = bench.PushNow(0, table, 0, 1);
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(full.message(), HasSubstr("LEEWAY_HELD_BYTES_MAX"));
  bench.Tick(0, 1);
  bench.Tick(1, 1);
  bench.Take(0);
  EXPECT_TRUE(bench.PushNow(0, table, 1, 1).ok());
}

TEST(Ssp, HoldsAndReleasesAtTheBound) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Ssp(2)));
  bench.Tick(0, 1);
  bench.Tick(0, 2);
  bench.Take(0);
  EXPECT_TRUE(bench.PushNow(0, table, 2, 1).ok());
  bench.Send(0, bench.DensePull(0, table, 2));
  Answer answer = bench.TakeReply(0);
  EXPECT_EQ(answer.reply().staleness, 2u);
  EXPECT_THAT(answer.floats(), Each(1));  // its own push
  bench.Tick(0, 3);
  bench.Send(0, bench.DensePull(0, table, 3));
  EXPECT_FALSE(bench.GotReply(0));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 10).ok());
  bench.Tick(1, 1);
  answer = bench.TakeReply(0);
  EXPECT_EQ(answer.reply().staleness, 2u);
  EXPECT_EQ(answer.reply().slowest_clock, 1u);
  EXPECT_THAT(answer.floats(), Each(11));
}

TEST(Ssp, PushPullIsAppliedAtOnceAndAnsweredWithinTheBound) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Ssp(1)));
  bench.Tick(0, 2);
  bench.Take(0);
  proto::Request request = bench.DensePush(0, table, 2);
  request.op = proto::Op::kPushPull;
  bench.Send(0, request, Bench::Filled(1));
  EXPECT_FALSE(bench.GotReply(0));
  EXPECT_THAT(bench.PullNow(1, table, 0), Each(1));
  bench.Tick(1, 1);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(1));
}

TEST(Ssp, ADeadWorkerIsNotWaitedFor) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Ssp(0 + 1)));
  bench.Tick(0, 5);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, table, 5));
  EXPECT_FALSE(bench.GotReply(0));
  bench.SetState(1, proto::WorkerState::kDead);
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
}

TEST(Asp, NeverHoldsAndSaysHowStale) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Asp()));
  bench.Tick(0, 40);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, table, 40));
  EXPECT_EQ(bench.TakeReply(0).reply().staleness, 40u);
}

// A table whose replies are versions of its blocks; the newest one that an answer tells of.
TableSpec VersionsTable(const Consistency& consistency) {
  TableSpec spec = AddTable("w", consistency);
  spec.codec = "onebit";
  return spec;
}
std::uint64_t VersionOf(const Answer& answer) {
  EXPECT_TRUE(answer.reply().result.ok()) << answer.reply().result;
  EXPECT_TRUE(answer.reply().coded);
  return answer.reply().parts.empty() ? 0 : answer.reply().parts.back().version;
}

TEST(Versions, OfTheTimeWhenAWorkerWasDeadAreNotWhatItsPushesAreIn) {
  Bench bench;
  const std::uint32_t table = bench.Install(VersionsTable(Consistency::Ssp(1)));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  bench.SetState(1, proto::WorkerState::kDead);
  bench.Tick(0, 5);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, table, 5));
  EXPECT_EQ(VersionOf(bench.TakeReply(0)), 2u);  // made when the slowest worker was at clock 5
  bench.SetState(1, proto::WorkerState::kAlive);
  EXPECT_TRUE(bench.PushNow(1, table, 0, 1).ok());
  bench.Tick(1, 4);
  bench.Take(1);
  bench.Send(0, bench.DensePull(0, table, 5));
  const Answer answer = bench.TakeReply(0);
  EXPECT_EQ(VersionOf(answer), 3u);
  EXPECT_EQ(answer.reply().slowest_clock, 4u);
}

// Clocks close one by one, and what was held for the first of them is answered in between.
TEST(Versions, APullIsAnsweredByTheCodecOfTheClockThatHasClosed) {
  Bench bench;
  TableSpec spec = VersionsTable(Consistency::Bsp());
  spec.codecs = {"onebit", "none"};
  const std::uint32_t table = bench.Install(spec);
  bench.map.codecs = {
      {.table = table, .number = 1, .before = 0, .choice = 1, .clock = 2, .decided = true}};
  bench.Publish();
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  bench.Tick(0, 1);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, table, 1));
  bench.Tick(0, 3);
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(1, 3);
  const Answer answer = bench.TakeReply(0);
  EXPECT_TRUE(answer.reply().result.ok()) << answer.reply().result;
  EXPECT_TRUE(answer.reply().coded);
}

TEST(Versions, AreAtMostOneClockStalerThanTheTable) {
  Bench bench;
  const std::uint32_t table = bench.Install(VersionsTable(Consistency::Asp()));
  const auto pull = [&](std::uint64_t have) {
    proto::Request request = bench.DensePull(0, table, 9);
    request.have = have;
    bench.Send(0, request);
    return bench.TakeReply(0);
  };
  const auto tick = [&](std::uint64_t clock) {
    for (const std::uint32_t rank : {0u, 1u}) {
      bench.Tick(rank, clock);
      bench.Take(rank);
    }
  };
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  EXPECT_EQ(VersionOf(pull(1)), 0u);  // nothing new for who holds the newest one
  tick(1);
  EXPECT_EQ(VersionOf(pull(1)), 2u);  // the slowest worker has gone on
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
  tick(2);
  const Answer older = pull(1);
  EXPECT_EQ(VersionOf(older), 2u);
  EXPECT_EQ(older.reply().slowest_clock, 1u);  // that of the version
  tick(3);
  const Answer newer = pull(1);
  EXPECT_EQ(VersionOf(newer), 3u);
  EXPECT_EQ(newer.reply().slowest_clock, 3u);
}

TEST(TestSwitch, NeverHoldServesStalerThanAllowedAndSaysSo) {
  Bench bench({.never_hold = true});
  const std::uint32_t ssp = bench.Install(AddTable("s", Consistency::Ssp(1)));
  const std::uint32_t bsp = bench.Install(AddTable("b", Consistency::Bsp()));
  bench.Tick(0, 4);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, ssp, 4));
  EXPECT_EQ(bench.TakeReply(0).reply().staleness, 4u);
  bench.Send(0, bench.DensePull(0, bsp, 4));
  EXPECT_EQ(bench.TakeReply(0).reply().staleness, 4u);
}

TEST(Deadlines, NameTheStragglers) {
  Bench bench({.num_workers = 3});
  const std::uint32_t table = bench.Install(AddTable("fc1", Consistency::Ssp(3)));
  bench.Tick(0, 45);
  bench.Tick(1, 40);
  bench.Tick(2, 41);
  bench.Take(0);
  proto::Request pull = bench.DensePull(0, table, 45);
  pull.timeout_ms = 1800;
  bench.Send(0, pull);
  bench.world().RunFor(absl::Milliseconds(1799));
  EXPECT_FALSE(bench.GotReply(0));
  bench.world().RunFor(absl::Milliseconds(2));
  const proto::Reply reply = bench.TakeReply(0).reply();
  EXPECT_EQ(reply.result.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(reply.result.message(),
              HasSubstr("worker 1 is at clock 40, worker 2 at clock 41; waiting for clock 42 of "
                        "table fc1"));
  EXPECT_THAT(reply.result.message(), HasSubstr("LEEWAY_REQUEST_TIMEOUT_MS"));
  bench.Tick(1, 45);
  bench.Tick(2, 45);
  EXPECT_FALSE(bench.GotReply(0));
  EXPECT_EQ(bench.counters().deadlines, 1u);
}

TEST(Deadlines, EachRequestHasItsOwn) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Tick(0, 1);
  bench.Take(0);
  for (std::uint64_t timeout : {300u, 100u, 0u, 200u}) {
    proto::Request pull = bench.DensePull(0, table, 1);
    pull.timeout_ms = timeout;
    bench.Send(0, pull);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(bench.GotReply(0));
    bench.world().RunFor(absl::Milliseconds(101));
    EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kDeadlineExceeded);
  }
  bench.world().RunFor(absl::Hours(10));
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(1, 1);
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
}

TEST(PendingPulls, AreDroppedWithTheirConnectionAndWaitAgainWhenSentAgain) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Tick(0, 1);
  bench.Take(0);
  const proto::Request pull = bench.DensePull(0, table, 1);
  bench.Send(0, pull);
  const van::PeerId before = bench.PeerOf(0);
  bench.Disconnect(0, /*connect_again=*/true);
  bench.Send(0, pull);
  EXPECT_FALSE(bench.GotReply(0));
  bench.Tick(1, 1);
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  EXPECT_TRUE(bench.TakeFrom(before).empty());
}

TEST(PendingPulls, AreDroppedWithTheirWorker) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Tick(0, 1);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, table, 1));
  bench.SetState(0, proto::WorkerState::kDead);
  bench.Tick(1, 1);
  EXPECT_FALSE(bench.GotReply(0));
  EXPECT_EQ(bench.counters().pulls_served, 0u);
}

TEST(PendingPulls, AnswersGoToTheConnectionThatAskedLast) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  bench.Tick(0, 1);
  bench.Take(0);
  const proto::Request pull = bench.DensePull(0, table, 1);
  bench.Send(0, pull);
  const van::PeerId second =
      bench.ConnectAs({Role::kWorker, 10, Bench::IncarnationOf(0), Bench::kCluster, 0});
  bench.SendFrom(second, pull);
  bench.Tick(1, 1);
  EXPECT_EQ(bench.TakeFrom(second).size(), 1u);
  EXPECT_FALSE(bench.GotReply(0));
}

TEST(HeldPushes, ANewIncarnationOfAWorkerTakesItsPlace) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 7).ok());
  bench.map.workers[1] = {.node = 30, .rank = 1, .incarnation = 4444};
  bench.Publish();
  EXPECT_EQ(bench.counters().pushes_discarded, 1u);
  bench.Disconnect(1, /*connect_again=*/true);
  // Its numbers start at 1 again, though the rank's were further.
  proto::Request push = bench.DensePush(1, table, 0);
  push.id.sequence = 1;
  push.after = 0;
  bench.Send(1, push, Bench::Filled(9));
  EXPECT_TRUE(bench.TakeReply(1).reply().result.ok());
  bench.Send(1, proto::ClockTick{.worker = 1, .incarnation = 4444, .epoch = 1, .clock = 1});
  bench.Tick(0, 1);
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 1), Each(9));
}

TEST(HeldPushes, AreAppliedWhenNoWorkerIsLeft) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", Consistency::Bsp()));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 7).ok());
  bench.SetState(0, proto::WorkerState::kLeft);
  EXPECT_EQ(bench.counters().pushes_applied, 0u);
  bench.SetState(1, proto::WorkerState::kLeft);
  EXPECT_EQ(bench.counters().pushes_applied, 1u);
}

}  // namespace
}  // namespace leeway::ps
