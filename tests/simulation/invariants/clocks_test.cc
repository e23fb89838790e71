// "Acknowledged clocks never go back" accepts and refuses the right messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "proto/encoding/encoding.h"
#include "tests/simulation/invariants/closed_clocks.h"
#include "tests/simulation/invariants/said_clocks.h"

namespace leeway::simulation::clocks_test {
namespace {

using ::testing::HasSubstr;
using Way = van::Overheard::Way;

van::Overheard Said(const std::string& from, const proto::AnyMessage& message, const Way& way = {},
                    const std::string& to = "somebody") {
  van::Message raw;
  raw.header = proto::Encode(message);
  return {from, to, way, std::move(raw)};
}

class SaidClocksTest : public testing::Test {
 protected:
  std::string Hear(const std::string& from, const proto::AnyMessage& message,
                   const Way& way = {.van = 1, .connection = 2}) {
    return said_.Hear(Said(from, message, way));
  }
  static proto::ClockTick Tick(std::uint64_t clock, std::uint64_t since = 0,
                               std::uint64_t incarnation = 7) {
    return {.worker = 1,
            .incarnation = incarnation,
            .epoch = 1,
            .clock = clock,
            .watermarks = {},
            .since = since};
  }
  static proto::Request Pull(std::uint64_t sequence, std::uint64_t clock) {
    proto::Request request;
    request.id = {.incarnation = 7, .sequence = sequence, .worker = 1, .shard = 3};
    request.table = 1;
    request.op = proto::Op::kPull;
    request.elements = 1;
    request.clock = clock;
    return request;
  }

  SaidClocks said_;
};

TEST_F(SaidClocksTest, TicksOfAWorkerGrow) {
  EXPECT_EQ(Hear("worker1", Tick(4)), "");
  EXPECT_EQ(Hear("worker1", Tick(4)), "");
  EXPECT_EQ(Hear("worker1", Tick(6)), "");
  EXPECT_EQ(Hear("worker1", Tick(5), {.van = 1, .connection = 3}), "");  // it waited there
  EXPECT_EQ(Hear("worker1", Tick(0, 0, 8)), "");                         // another process
  EXPECT_THAT(Hear("worker1", Tick(5)), HasSubstr("clock 5, having begun at 0, after clock 6"));
  EXPECT_THAT(Hear("worker1", Tick(7, 2)), HasSubstr("having begun at 2"));
}

TEST_F(SaidClocksTest, AWorkersClockGrows) {
  EXPECT_EQ(Hear("worker1", proto::MapAck{.version = 1, .clock = 3}), "");
  EXPECT_THAT(Hear("worker1", proto::MapAck{.version = 2, .clock = 2}), HasSubstr("clock 2"));
}

TEST_F(SaidClocksTest, RequestsAreNumberedByTheirClocks) {
  EXPECT_EQ(Hear("worker1", Pull(5, 2)), "");
  EXPECT_EQ(Hear("worker1", Pull(9, 4)), "");
  EXPECT_EQ(Hear("worker1", Pull(7, 3)), "");
  EXPECT_EQ(Hear("worker1", Pull(5, 2)), "");
  EXPECT_THAT(Hear("worker1", Pull(5, 3)), HasSubstr("request 5"));
  EXPECT_THAT(Hear("worker1", Pull(6, 1)), HasSubstr("request 6"));
  EXPECT_THAT(Hear("worker1", Pull(8, 5)), HasSubstr("request 9 of clock 4"));
}

TEST_F(SaidClocksTest, TheStableClockGrowsInAnEpoch) {
  const auto ack = [](std::uint64_t stable, std::uint64_t epoch) {
    return proto::ClockAck{.clock = 9, .stable = stable, .epoch = epoch};
  };
  EXPECT_EQ(Hear("server1", ack(4, 1)), "");
  EXPECT_EQ(Hear("server1", ack(2, 2)), "");  // it leads other shards
  EXPECT_EQ(Hear("server1", ack(1, 2), {.van = 2, .connection = 2}), "");
  EXPECT_THAT(Hear("server1", ack(1, 2)), HasSubstr("below 1 are stable"));
  EXPECT_THAT(Hear("server1", ack(9, 1)), HasSubstr("in epoch 1"));
}

TEST_F(SaidClocksTest, AVersionIsOneMap) {
  proto::ClusterMap map;
  map.version = 4;
  EXPECT_EQ(Hear("scheduler", map), "");
  EXPECT_EQ(Hear("scheduler", map), "");
  map.workers = {{.node = 2, .rank = 0, .incarnation = 7}};
  EXPECT_EQ(Hear("scheduler", map), "two maps have version 4");
  map.version = 5;
  EXPECT_EQ(Hear("scheduler", map), "");
  map = {};
  map.version = 4;
  EXPECT_THAT(Hear("scheduler", map), HasSubstr("version 4 after version 5"));
}

TEST_F(SaidClocksTest, ACheckpointAndAClusterHaveOneClock) {
  const proto::CheckpointCut cut{.checkpoint = 3, .clock = 8, .directory = "d"};
  EXPECT_EQ(Hear("scheduler", cut), "");
  EXPECT_THAT(
      Hear("scheduler", proto::CheckpointCut{.checkpoint = 3, .clock = 9, .directory = "d"}),
      HasSubstr("checkpoint 3 is of clock 9"));
  const proto::Welcome welcome{.node = 2,
                               .num_servers = 1,
                               .num_workers = 1,
                               .heartbeat_interval_ms = 100,
                               .failure_timeout_ms = 1000,
                               .block_bytes = 4096,
                               .clock = 5};
  EXPECT_EQ(Hear("scheduler", welcome), "");
  proto::Welcome other = welcome;
  other.clock = 6;
  EXPECT_THAT(Hear("scheduler", other), HasSubstr("begins at clock 6"));
}

class ClosedClocksTest : public testing::Test {
 protected:
  std::string Hear(const std::string& from, const proto::AnyMessage& message) {
    const van::Overheard heard = Said(from, message);
    logs_.Hear(heard);
    return closed_.Hear(heard);
  }
  // A Close by "server0", unless it is another one.
  std::string Close(std::uint64_t epoch, std::uint64_t index, std::uint64_t clock,
                    const proto::ClientSession& session = {}, const std::string& from = "server0") {
    return Hear(from, LogEntry(proto::LogEntryKind::kClose, epoch, index, clock, session));
  }
  static proto::Replicate LogEntry(proto::LogEntryKind kind, std::uint64_t epoch,
                                   std::uint64_t index, std::uint64_t clock,
                                   const proto::ClientSession& session) {
    proto::Replicate entry{.shard = 2, .epoch = epoch, .stream = 1, .entry = index, .kind = kind};
    entry.index = index;
    entry.clock = clock;
    entry.workers = {session};
    return entry;
  }
  // What `to` has sent up to there is on all members.
  void Commit(std::uint64_t index, const std::string& to = "server0") {
    const proto::ReplicateAck ack{.shard = 2, .stream = 1, .entry = index, .committed = index};
    const van::Overheard heard = Said("server3", ack, {}, to);
    logs_.Hear(heard);
    EXPECT_EQ(closed_.Hear(heard), "");
  }

  const History history_{0, 1};
  Checker checker_{&history_};
  LogHistory logs_{&checker_};
  ClosedClocks closed_{&logs_};
};

TEST_F(ClosedClocksTest, AClockClosesOnce) {
  EXPECT_EQ(Close(1, 5, 3), "");
  EXPECT_EQ(Close(1, 5, 3), "");
  EXPECT_THAT(Close(1, 6, 3), HasSubstr("entry 5 has closed clock 3"));
}

TEST_F(ClosedClocksTest, AnUncommittedClockMayCloseAgainAtAnotherHead) {
  EXPECT_EQ(Close(1, 5, 3), "");
  EXPECT_EQ(Close(2, 5, 3, {.rank = 0, .incarnation = 7, .clock = 4}, "server1"), "");
  EXPECT_EQ(closed_.ClosedIn(2), 0u);
  Commit(5, "server1");
  EXPECT_EQ(closed_.ClosedIn(2), 4u);
  EXPECT_THAT(Close(3, 6, 3, {}, "server1"), HasSubstr("clocks below 4 have closed already"));
}

TEST_F(ClosedClocksTest, ADeposedHeadIsNotJudged) {
  EXPECT_EQ(Close(2, 5, 3), "");
  Commit(5);
  EXPECT_EQ(Close(1, 6, 2, {}, "server2"), "");
}

TEST_F(ClosedClocksTest, ACloseSaysOfAWorkerAtLeastWhatThoseBeforeItSaid) {
  const proto::ClientSession session{
      .rank = 0, .incarnation = 7, .clock = 4, .since = 1, .admitted = 3, .admitted_held = 8};
  EXPECT_EQ(Close(1, 5, 3, session), "");
  Commit(5);
  EXPECT_EQ(Close(1, 6, 4, session), "");
  proto::ClientSession less = session;
  less.admitted_held = 7;
  EXPECT_THAT(Close(1, 7, 5, less), HasSubstr("pushes up to 3 and 7, and was at"));
  less = session;
  less.clock = 3;
  EXPECT_THAT(Close(1, 8, 6, less), HasSubstr("is at clock 3"));
  proto::ClusterMap map;
  map.version = 1;
  map.workers = {{.node = 5, .rank = 0, .incarnation = 10}};
  EXPECT_EQ(Hear("scheduler", map), "");
  less.admitted = 0;
  EXPECT_EQ(Close(1, 9, 7, less), "");
}

TEST_F(ClosedClocksTest, NobodyEntersNorJoinsBeforeWhatHasClosed) {
  EXPECT_EQ(Close(1, 5, 3), "");
  Commit(5);
  const proto::ClientSession session{.rank = 1, .incarnation = 7, .clock = 3, .since = 3};
  EXPECT_THAT(Hear("server0", LogEntry(proto::LogEntryKind::kEnter, 1, 6, 0, session)),
              HasSubstr("enters at clock 3, where clocks below 4"));
  EXPECT_THAT(Hear("server1", LogEntry(proto::LogEntryKind::kTransferBegin, 1, 5, 3, {})),
              HasSubstr("clocks below 4 have closed"));
  EXPECT_EQ(Hear("server1", LogEntry(proto::LogEntryKind::kTransferBegin, 1, 4, 3, {})),
            "");  // is older
  EXPECT_EQ(Hear("server1", LogEntry(proto::LogEntryKind::kTransferBegin, 1, 5, 4, {})), "");
}

TEST_F(ClosedClocksTest, AnswersKnowWhatHadClosedWhenTheyWereAskedFor) {
  proto::InstallTable install;
  install.table = 1;
  install.spec = TableSpec::Dense("t", {4}, DType::kInt64);
  install.spec.consistency = Consistency::Bsp();
  EXPECT_EQ(Hear("scheduler", install), "");
  const auto pull = [&](std::uint64_t sequence) {
    proto::Request request;
    request.id = {.incarnation = 7, .sequence = sequence, .worker = 1, .shard = 2};
    request.table = 1;
    request.op = proto::Op::kPull;
    request.elements = 4;
    EXPECT_EQ(Hear("worker1", request), "");
  };
  const auto answer = [&](std::uint64_t sequence) {
    proto::Reply reply;
    reply.id = {.incarnation = 7, .sequence = sequence, .worker = 1, .shard = 2};
    reply.slowest_clock = 3;
    return Hear("server0", reply);
  };
  pull(1);
  EXPECT_EQ(Close(1, 5, 3), "");
  Commit(5);
  pull(2);
  EXPECT_EQ(answer(1), "");
  EXPECT_THAT(answer(2), HasSubstr("as of clock 3, where clocks below 4 had closed"));
}

}  // namespace
}  // namespace leeway::simulation::clocks_test
