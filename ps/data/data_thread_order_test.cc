// Identity, epochs, order and resends: what happens to a request before a table sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/encoding/encoding.h"
#include "ps/testing/test_support.h"

namespace leeway::ps {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

const Consistency kAsp = Consistency::Asp();

TEST(Order, PushesAndPulls) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  EXPECT_TRUE(bench.PushNow(0, table, 0, 2).ok());
  EXPECT_TRUE(bench.PushNow(1, table, 0, 3).ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(5));
  EXPECT_THAT(bench.PullNow(0, table, 0, /*block=*/1), Each(0));
}

TEST(Order, APushSentAgainIsAcknowledgedAndNotApplied) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  const proto::Request push = bench.DensePush(0, table, 0);
  for (int i = 0; i < 3; ++i) {
    bench.Send(0, push, Bench::Filled(2));
    const Answer answer = bench.TakeReply(0);
    EXPECT_TRUE(answer.reply().result.ok());
    EXPECT_EQ(answer.reply().id, push.id);
  }
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(2));
  EXPECT_EQ(bench.counters().duplicates, 2u);
}

TEST(Order, APullSentAgainIsAnsweredAgain) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  const proto::Request pull = bench.DensePull(0, table, 0);
  bench.Send(0, pull);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(0));
  EXPECT_TRUE(bench.PushNow(1, table, 0, 4).ok());
  bench.Send(0, pull);
  EXPECT_THAT(bench.TakeReply(0).floats(), Each(4));
}

TEST(Order, ARefusedPushSentAgainIsRefusedAgain) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  proto::Request push = bench.DensePush(0, table, 0);
  push.elements = 3;
  for (int i = 0; i < 2; ++i) {
    bench.Send(0, push, Bench::Values({1, 2, 3}));
    EXPECT_FALSE(bench.TakeReply(0).reply().result.ok());
  }
  // The number was used up all the same.
  EXPECT_TRUE(bench.PushNow(0, table, 0, 1).ok());
}

TEST(Order, EarlyRequestsWaitForTheMissingOnes) {
  Bench bench;
  TableSpec spec = AddTable("w", kAsp);
  spec.updater.name = "assign";
  const std::uint32_t table = bench.Install(spec);
  const proto::Request first = bench.DensePush(0, table, 0);
  const proto::Request second = bench.DensePush(0, table, 0);
  const proto::Request third = bench.DensePush(0, table, 0);
  bench.Send(0, third, Bench::Filled(3));
  bench.Send(0, second, Bench::Filled(2));
  bench.Send(0, second, Bench::Filled(2));
  EXPECT_FALSE(bench.GotReply(0));
  bench.Send(0, first, Bench::Filled(1));
  const std::vector<Answer> answers = bench.Take(0);
  ASSERT_EQ(answers.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(answers[i].reply().result.ok());
    EXPECT_EQ(answers[i].reply().id.sequence, i + 1);
  }
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(3));
}

TEST(Order, ARequestBeyondTheLimitIsDroppedAndTakenWhenResent) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  const proto::Request first = bench.DensePush(0, table, 0);
  std::vector<proto::Request> rest;
  for (std::size_t i = 0; i < kEarlyRequestsMax + 5; ++i) {
    rest.push_back(bench.DensePush(0, table, 0));
    bench.Send(0, rest.back(), Bench::Filled(1));
  }
  EXPECT_EQ(bench.counters().early_dropped, 5u);
  bench.Send(0, first, Bench::Filled(1));
  EXPECT_EQ(bench.Take(0).size(), 1 + kEarlyRequestsMax);
  for (const proto::Request& request : rest) bench.Send(0, request, Bench::Filled(1));
  bench.Take(0);
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(kEarlyRequestsMax + 6));
}

TEST(Order, EarlyRequestsGoWithTheirConnection) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  const proto::Request first = bench.DensePush(0, table, 0);
  const proto::Request second = bench.DensePush(0, table, 0);
  bench.Send(0, second, Bench::Filled(2));
  bench.Disconnect(0, /*connect_again=*/true);
  bench.Send(0, first, Bench::Filled(1));
  EXPECT_EQ(bench.TakeReply(0).reply().id, first.id);
  bench.Send(0, second, Bench::Filled(2));
  EXPECT_EQ(bench.TakeReply(0).reply().id, second.id);
  EXPECT_EQ(bench.counters().duplicates, 0u);
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(3));
}

TEST(Order, AnOlderEpochIsAbortedAndLeavesTheNumberUnused) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  proto::Request push = bench.DensePush(0, table, 0);
  bench.map.epoch = 2;
  bench.Publish();
  bench.Send(0, push, Bench::Filled(1));
  EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kAborted);
  push.epoch = 3;
  bench.Send(0, push, Bench::Filled(1));
  EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kUnavailable);
  push.epoch = 2;
  bench.Send(0, push, Bench::Filled(1));
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  EXPECT_THAT(bench.PullNow(0, table, 0), Each(1));
}

TEST(Order, ANewEpochRefusesEarlyRequests) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  bench.DensePush(0, table, 0);  // lost
  const proto::Request second = bench.DensePush(0, table, 0);
  bench.Send(0, second, Bench::Filled(2));
  bench.map.epoch = 2;
  bench.Publish();
  const Answer answer = bench.TakeReply(0);
  EXPECT_EQ(answer.reply().result.code(), StatusCode::kAborted);
  EXPECT_EQ(answer.reply().id, second.id);
}

TEST(Order, NothingIsServedBeforeTheClusterIsComplete) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  bench.map.epoch = 0;
  bench.Publish();
  bench.Send(0, bench.DensePull(0, table, 0));
  EXPECT_EQ(bench.TakeReply(0).reply().result.code(), StatusCode::kUnavailable);
}

TEST(Identity, AWorkerNotOnTheMapIsToldToTryAgain) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  proto::Request pull = bench.DensePull(0, table, 0);
  const van::PeerId stranger = bench.ConnectAs({.role = Role::kWorker,
                                                .node = 99,
                                                .incarnation = 9,
                                                .cluster = Bench::kCluster,
                                                .capabilities = 0});
  pull.id.incarnation = 9;
  bench.SendFrom(stranger, pull);
  const std::vector<Answer> answers = bench.TakeFrom(stranger);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].reply().result.code(), StatusCode::kUnavailable);
  EXPECT_FALSE(bench.van().Dropped(stranger).has_value());
}

TEST(Identity, PretendersAreDropped) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  const proto::Request pull = bench.DensePull(0, table, 0);
  struct {
    const char* what;
    van::Identity identity;
  } cases[] = {
      {"a server", {Role::kServer, 10, 1000, Bench::kCluster, 0}},
      {"a tool", {Role::kTool, 10, 1000, Bench::kCluster, 0}},
      {"of another cluster", {Role::kWorker, 10, 1000, Bench::kCluster + 1, 0}},
      {"worker 1 in the name of worker 0", {Role::kWorker, 11, 1001, Bench::kCluster, 0}},
      {"another incarnation than it says", {Role::kWorker, 10, 1001, Bench::kCluster, 0}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const van::PeerId peer = bench.ConnectAs(c.identity);
    bench.SendFrom(peer, pull);
    ASSERT_TRUE(bench.van().Dropped(peer).has_value());
    EXPECT_FALSE(bench.van().Dropped(peer)->ok());
    EXPECT_TRUE(bench.TakeFrom(peer).empty());
  }
  const van::PeerId peer = bench.ConnectAs({Role::kWorker, 11, 1001, Bench::kCluster, 0});
  proto::Request imported = pull;
  imported.id.incarnation = 1001;  // its own, with worker 0's rank
  bench.SendFrom(peer, imported);
  EXPECT_THAT(bench.van().Dropped(peer)->message(), HasSubstr("in the name of worker 0"));
  EXPECT_EQ(bench.counters().violations, 6u);
}

// Another process has its rank and its node by now, or its map has not come yet.
TEST(Identity, AProcessThatTheMapKnowsFromAnotherStartIsToldToTryAgain) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  const van::PeerId other =
      bench.ConnectAs({Role::kWorker, 10, 1001, Bench::kCluster, 0});  // known as 1000
  proto::Request pull = bench.DensePull(0, table, 0);
  pull.id.incarnation = 1001;
  bench.SendFrom(other, pull);
  const std::vector<Answer> answers = bench.TakeFrom(other);
  ASSERT_EQ(answers.size(), 1u);
  const absl::Status result = answers[0].reply().result;
  EXPECT_EQ(result.code(), StatusCode::kUnavailable) << result;
  EXPECT_THAT(std::string(result.message()), HasSubstr("another start of its process"));
}

TEST(Identity, DeadAndLeftWorkersAreNotServed) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  bench.SetState(0, proto::WorkerState::kDead);
  bench.Send(0, bench.DensePull(0, table, 0));
  EXPECT_THAT(bench.TakeReply(0).reply().result.message(), HasSubstr("given up as dead"));
  bench.SetState(1, proto::WorkerState::kLeft);
  bench.Send(1, bench.DensePull(1, table, 0));
  EXPECT_EQ(bench.TakeReply(1).reply().result.code(), StatusCode::kUnavailable);
}

TEST(Messages, GarbageAndForeignMessagesDropTheirSender) {
  Bench bench;
  bench.SendRaw(bench.PeerOf(0), {.header = runtime::Buffer::CopyOf("garbage"), .payload = {}});
  ASSERT_TRUE(bench.van().Dropped(bench.PeerOf(0)).has_value());
  EXPECT_EQ(bench.counters().malformed, 1u);
  bench.Send(1, proto::Join{.role = Role::kWorker, .host = "h"});
  ASSERT_TRUE(bench.van().Dropped(bench.PeerOf(1)).has_value());
}

TEST(Messages, TruncatedPayloadDropsItsSender) {
  Bench bench;
  const std::uint32_t table = bench.Install(AddTable("w", kAsp));
  bench.Send(0, bench.DensePush(0, table, 0), Bench::Values({1, 2}));
  ASSERT_TRUE(bench.van().Dropped(bench.PeerOf(0)).has_value());
  EXPECT_EQ(bench.counters().malformed, 1u);
}

TEST(Refused, WithAReason) {
  Bench bench({.message_bytes_max = 4096});
  const std::uint32_t dense = bench.Install(AddTable("w", kAsp));
  const std::uint32_t sparse = bench.Install([] {
    TableSpec spec = TableSpec::Sparse("emb", 8);
    spec.consistency = kAsp;
    return spec;
  }());
  auto refused = [&](proto::Request request, Payload payload = {}) {
    bench.Send(0, request, std::move(payload));
    return std::string(bench.TakeReply(0).reply().result.message());
  };
  EXPECT_THAT(refused(bench.DensePull(0, dense, kClockMax)), HasSubstr("clock"));
  EXPECT_THAT(refused(bench.SparsePull(0, dense, 0, 0, 1), Bench::Keys({1})),
              HasSubstr("table w is dense; the request says sparse"));
  proto::Request other_type = bench.DensePull(0, dense, 0);
  other_type.dtype = DType::kInt32;
  EXPECT_THAT(refused(other_type), HasSubstr("table w holds float32; the request says int32"));
  EXPECT_THAT(refused(bench.SparsePull(0, sparse, 0, 0, 200),
                      Bench::Keys(std::vector<std::uint64_t>(200, 1))),
              HasSubstr("LEEWAY_MESSAGE_BYTES_MAX"));
  proto::Request elsewhere = bench.DensePull(0, dense, 0);
  elsewhere.id.shard = 7;
  EXPECT_THAT(refused(elsewhere), HasSubstr("shard 7 does not belong to thread 0 of server 0"));
  EXPECT_FALSE(bench.van().Dropped(bench.PeerOf(0)).has_value());
}

// How much a ragged pull gathers is known only from its rows.
TEST(Refused, ARaggedPullThatDoesNotFitIntoAMessage) {
  Bench bench({.num_shards = 1, .message_bytes_max = 4096});
  TableSpec spec = TableSpec::Ragged("lists");
  spec.consistency = kAsp;
  const std::uint32_t lists = bench.Install(spec);
  for (const std::uint64_t key : {1, 2}) {
    proto::Request push = bench.SparsePull(0, lists, 0, 0, 1);
    push.op = proto::Op::kPush;
    push.kind = TableKind::kRagged;
    push.elements = 800;
    const std::uint32_t width = 800;
    Payload payload = Bench::Keys({key});
    payload.push_back(runtime::Buffer::CopyOf(&width, sizeof(width)));
    payload.push_back(Bench::Values(std::vector<float>(width, 1))[0]);
    bench.Send(0, push, std::move(payload));
    ASSERT_TRUE(bench.TakeReply(0).reply().result.ok());
  }
  const auto pull = [&](const std::vector<std::uint64_t>& keys) {
    proto::Request request = bench.SparsePull(0, lists, 0, 0, keys.size());
    request.kind = TableKind::kRagged;
    bench.Send(0, request, Bench::Keys(keys));
    return bench.TakeReply(0).reply().result;
  };
  EXPECT_TRUE(pull({2}).ok());
  EXPECT_THAT(std::string(pull({1, 2}).message()),
              AllOf(HasSubstr("table 'lists': a pull of 6400 bytes"),
                    HasSubstr("LEEWAY_MESSAGE_BYTES_MAX")));
  EXPECT_EQ(bench.counters().replies_unsent, 0u);  // it was not even gathered
}

TEST(Refused, NanWhereTheTableSaysSo) {
  Bench bench;
  TableSpec spec = AddTable("counts", kAsp);
  const std::uint32_t counts = bench.Install(spec);
  spec.name = "refuses";
  spec.nonfinite = NonFinite::kRefuse;
  const std::uint32_t refuses = bench.Install(spec);
  std::vector<float> values(Bench::kBlock, 1);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  bench.Send(0, bench.DensePush(0, counts, 0), Bench::Values(values));
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
  bench.Send(0, bench.DensePush(0, refuses, 0), Bench::Values(values));
  EXPECT_THAT(bench.TakeReply(0).reply().result.message(), HasSubstr("NaN"));
  EXPECT_EQ(bench.counters().nonfinite_pushes, 2u);
  EXPECT_THAT(bench.PullNow(0, refuses, 0), Each(0));
}

TEST(Refused, ValuesThatWouldWrapAroundWhereTheTableSaysSo) {
  Bench bench;
  TableSpec spec = TableSpec::Dense("counts", {2}, DType::kInt64);
  spec.updater = {"add", {}};
  spec.consistency = kAsp;
  const std::uint32_t counts = bench.Install(spec);
  spec.name = "refuses";
  spec.nonfinite = NonFinite::kRefuse;
  const std::uint32_t refuses = bench.Install(spec);
  const auto push = [&](std::uint32_t table) {
    proto::Request request = bench.DensePush(0, table, 0);
    request.dtype = DType::kInt64;
    request.elements = 2;
    const std::int64_t values[2] = {std::numeric_limits<std::int64_t>::max(), 1};
    bench.Send(0, request, {runtime::Buffer::CopyOf(values, sizeof(values))});
    return bench.TakeReply(0).reply().result;
  };
  for (const std::uint32_t table : {counts, refuses}) EXPECT_TRUE(push(table).ok());
  EXPECT_EQ(bench.counters().overflows, 0u);
  EXPECT_TRUE(push(counts).ok());
  EXPECT_EQ(bench.counters().overflows, 1u);
  const absl::Status refused = push(refuses);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("would make an integer wrap around"));
  EXPECT_EQ(bench.counters().overflows, 2u);
  EXPECT_EQ(bench.counters().pushes_applied, 3u);
}

// Such a push comes from a worker that does not know yet that the table refuses it.
TEST(Refused, RowsThatHaveWrappedAroundWhereTheTableSaysSo) {
  Bench bench({.num_shards = 1});
  for (const bool refuses : {false, true}) {
    for (const Consistency& consistency : {kAsp, Consistency::Bsp()}) {
      TableSpec spec = TableSpec::Sparse(absl::StrCat("t", refuses, consistency.is_bsp()), 1);
      spec.dtype = DType::kInt64;
      spec.updater = {"add", {}};
      spec.consistency = consistency;
      if (refuses) spec.nonfinite = NonFinite::kRefuse;
      proto::Request request = bench.SparsePull(0, bench.Install(spec), 0, 0, 1);
      request.op = proto::Op::kPush;
      request.dtype = DType::kInt64;
      request.elements = 1;
      request.rows_wrapped = true;
      const std::int64_t value = std::numeric_limits<std::int64_t>::min();
      Payload payload = Bench::Keys({0});
      payload.push_back(runtime::Buffer::CopyOf(&value, sizeof(value)));
      const std::uint64_t before = bench.counters().overflows;
      bench.Send(0, request, std::move(payload));
      const absl::Status result = bench.TakeReply(0).reply().result;
      EXPECT_EQ(bench.counters().overflows, before + 1);
      EXPECT_EQ(result.code(), refuses ? StatusCode::kInvalidArgument : StatusCode::kOk) << result;
      if (refuses) {
        EXPECT_THAT(std::string(result.message()), HasSubstr("TableSpec::nonfinite"));
      }
    }
  }
}

TEST(Tables, OneThatWasNotCreatedIsForgottenUnlessItIsInUse) {
  Bench bench;
  const std::uint32_t unused = bench.Install(AddTable("w", kAsp));
  bench.thread().ForgetTable(unused);
  bench.thread().ForgetTable(unused);
  bench.Send(1, bench.DensePull(1, unused, 0));
  EXPECT_THAT(bench.TakeReply(1).reply().result.message(), HasSubstr("is not installed"));

  // Somebody made the id up, and waits.
  const std::uint32_t asked_for = bench.Install(AddTable("v", Consistency::Bsp()));
  bench.Tick(0, 1);
  bench.Take(0);
  bench.Send(0, bench.DensePull(0, asked_for, 1));
  EXPECT_FALSE(bench.GotReply(0));
  bench.thread().ForgetTable(asked_for);
  bench.Tick(1, 1);
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
}

// Its worker says it again until its deadline, and may hear of another head meanwhile.
TEST(Tables, ARequestToOneThatIsNotInstalledYetMayComeAgain) {
  Bench bench;
  const std::uint32_t known = bench.Install(AddTable("w", Consistency::Bsp()));
  const std::uint32_t next = known + 1;
  const proto::Request push = bench.DensePush(0, next, 0);
  const auto refused = [&] {
    const absl::Status result = bench.TakeReply(0).reply().result;
    EXPECT_EQ(result.code(), StatusCode::kUnavailable) << result;
    EXPECT_THAT(std::string(result.message()), HasSubstr("is not installed on this server yet"));
  };
  bench.Send(0, push, Bench::Filled(3));
  refused();
  bench.Send(0, push, Bench::Filled(3));
  refused();
  const TableSpec spec = AddTable("v", Consistency::Bsp());
  ASSERT_TRUE(bench.thread().InstallTable(next, spec, *MakeUpdater(spec)).ok());
  bench.Send(0, push, Bench::Filled(3));
  EXPECT_TRUE(bench.TakeReply(0).reply().result.ok());
}

TEST(Tables, AnotherOneOfTheSameIdIsAnError) {
  Bench bench;
  const TableSpec spec = AddTable("w", kAsp);
  const std::uint32_t table = bench.Install(spec);
  EXPECT_TRUE(bench.thread().InstallTable(table, spec, *MakeUpdater(spec)).ok());
  const TableSpec other = AddTable("v", kAsp);
  const absl::Status conflict = bench.thread().InstallTable(table, other, *MakeUpdater(other));
  EXPECT_EQ(conflict.code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace leeway::ps
