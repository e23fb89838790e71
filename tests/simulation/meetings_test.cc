// An event meets the states that held before it, and no others.
#include "tests/simulation/meetings.h"

#include <gtest/gtest.h>

#include <string>

namespace leeway::simulation::meetings_test {
namespace {

class MeetingsTest : public testing::Test {
 protected:
  void Hear(const std::string& from, const proto::AnyMessage& message,
            const std::string& to = "somebody", std::uint64_t van = 1) {
    van::Overheard heard(from, to, {.van = van}, van::Message{});
    heard.message = message;
    meetings_.Hear(heard, now_);
  }
  bool Met(Event event, State state) const {
    return meetings_.met()[static_cast<std::size_t>(event)].test(static_cast<std::size_t>(state));
  }
  bool Happened(Event event) const { return Met(event, State::kRestored); }

  // Of two shards on the servers 0 and 1, and with the workers 0 and 1.
  static proto::ClusterMap Map(std::uint64_t version) {
    proto::ClusterMap map{.version = version, .epoch = version};
    map.owners = {{.server_rank = 0}, {.server_rank = 0}};
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      map.servers.push_back({.node = 1 + rank, .rank = rank, .incarnation = 10 + rank});
      map.workers.push_back({.node = 3 + rank, .rank = rank, .incarnation = 20 + rank});
    }
    return map;
  }
  static proto::ShardReplica Replica(std::uint32_t shard, bool joining) {
    return {.shard = shard, .place = {.server_rank = 1}, .joining = joining};
  }
  void Push(const std::string& worker, std::uint64_t clock) {
    Hear(worker, proto::PushBatch{.clock = clock});
  }
  void Tick(const std::string& worker, std::uint64_t clock, std::uint64_t since = 0) {
    Hear(worker, proto::ClockTick{.clock = clock, .since = since});
  }
  void Refuse(std::uint64_t sequence, proto::Op op = proto::Op::kPush) {
    proto::Reply reply;
    reply.id.sequence = sequence;
    reply.op = op;
    reply.result = absl::InvalidArgumentError("no");
    Hear("server0", reply, "worker0");
  }
  // From now on every event meets State::kRestored.
  void Restore() { Hear("scheduler", proto::RestoreShards{}); }

  absl::Time now_ = absl::UnixEpoch();
  bool scheduler_is_dead_ = false;
  Meetings meetings_{[] { return false; }, [this] { return scheduler_is_dead_; }};
};

TEST_F(MeetingsTest, AnEventDoesNotMeetTheStateThatItBegins) {
  proto::Request pull;
  pull.op = proto::Op::kPull;
  Hear("worker0", proto::CreateTable{.request = 1});
  Hear("worker0", proto::CreateTable{.request = 1});  // once more, as it is not answered
  Hear("worker0", proto::Leave{});
  Hear("worker0", proto::Leave{});
  Refuse(1);
  Refuse(1);
  Hear("reader0", pull);
  EXPECT_FALSE(Met(Event::kCreate, State::kCreate));
  EXPECT_FALSE(Met(Event::kLeaves, State::kLeave));
  EXPECT_FALSE(Met(Event::kRefusal, State::kRefusal));
  EXPECT_FALSE(Met(Event::kRead, State::kReader));
  Hear("worker1", proto::CreateTable{.request = 1});
  Hear("worker1", proto::Leave{});
  Refuse(2);
  Hear("reader0", pull);
  EXPECT_TRUE(Met(Event::kCreate, State::kCreate));
  EXPECT_TRUE(Met(Event::kLeaves, State::kLeave));
  EXPECT_TRUE(Met(Event::kRefusal, State::kRefusal));
  EXPECT_TRUE(Met(Event::kRead, State::kReader));
}

TEST_F(MeetingsTest, AMapIsJudgedByTheOneBefore) {
  Hear("scheduler", Map(1));
  proto::ClusterMap map = Map(2);
  map.replicas = {Replica(0, true)};
  map.codecs = {{.table = 1, .number = 1}};
  map.workers[1].state = proto::WorkerState::kDead;
  Hear("scheduler", map);
  EXPECT_FALSE(Met(Event::kTransferBegins, State::kTransfer));
  EXPECT_FALSE(Met(Event::kTransferBegins, State::kCodecSwitch));
  EXPECT_FALSE(Met(Event::kWorkerDies, State::kTransfer));
  map.version = 3;
  map.replicas.push_back(Replica(1, true));
  map.servers[1].alive = false;
  Hear("scheduler", map);
  EXPECT_TRUE(Met(Event::kTransferBegins, State::kTransfer));
  EXPECT_TRUE(Met(Event::kTransferBegins, State::kCodecSwitch));
  EXPECT_TRUE(Met(Event::kServerDies, State::kTransfer));
}

TEST_F(MeetingsTest, AMapThatEndsAStateFallsIntoIt) {
  proto::ClusterMap map = Map(1);
  map.replicas = {Replica(0, true)};
  Hear("scheduler", map);
  map = Map(2);
  map.servers[1].alive = false;
  Hear("scheduler", map);
  EXPECT_TRUE(Met(Event::kServerDies, State::kTransfer));
}

TEST_F(MeetingsTest, AnEventDoesNotMeetTheStateThatItEnds) {
  Restore();
  proto::ClusterMap map = Map(1);
  map.replicas = {Replica(0, true)};
  map.codecs = {{.table = 1, .number = 1}};
  Hear("scheduler", map);
  map.version = 2;
  map.replicas = {Replica(0, false), Replica(1, true)};
  map.codecs = {{.table = 1, .number = 1, .decided = true}, {.table = 2, .number = 1}};
  Hear("scheduler", map);
  EXPECT_TRUE(Happened(Event::kTransferEnds));
  EXPECT_TRUE(Happened(Event::kSwitchDecided));
  EXPECT_FALSE(Met(Event::kTransferEnds, State::kTransfer));
  EXPECT_FALSE(Met(Event::kSwitchDecided, State::kCodecSwitch));
  map.version = 3;
  map.replicas = {Replica(0, true), Replica(1, true)};
  map.codecs.push_back({.table = 3, .number = 1});
  Hear("scheduler", map);
  map.version = 4;
  map.replicas = {Replica(0, false), Replica(1, true)};
  map.codecs[1].decided = true;
  Hear("scheduler", map);
  EXPECT_TRUE(Met(Event::kTransferEnds, State::kTransfer));
  EXPECT_TRUE(Met(Event::kSwitchDecided, State::kCodecSwitch));
}

TEST_F(MeetingsTest, AClockThatEndsMeetsTheOpenClocksOfOthers) {
  Restore();
  Push("worker0", 0);
  Tick("worker0", 1);
  EXPECT_TRUE(Happened(Event::kTick));
  Push("worker0", 0);  // it is repeated
  Tick("worker1", 1);
  EXPECT_FALSE(Met(Event::kTick, State::kOpenClock));
  Push("worker0", 1);
  Tick("worker0", 1);  // likewise: the clock stays open
  Tick("worker1", 2);
  EXPECT_TRUE(Met(Event::kTick, State::kOpenClock));
}

TEST_F(MeetingsTest, TheFirstTickOfALateWorkerNamesTheClockThatItBeginsAt) {
  Restore();
  Hear("worker0", proto::EnterClock{});
  Tick("worker0", 7, 7);
  EXPECT_FALSE(Happened(Event::kTick));
  EXPECT_FALSE(Happened(Event::kEntered));
  Tick("worker0", 8, 7);
  EXPECT_TRUE(Happened(Event::kEntered));
  EXPECT_FALSE(Met(Event::kEntered, State::kLateJoin));
}

TEST_F(MeetingsTest, ADeadWorkerIsInNothing) {
  Hear("scheduler", Map(1));
  Hear("worker0", proto::EnterClock{});
  Push("worker0", 0);
  proto::ClusterMap map = Map(2);
  map.workers[0].state = proto::WorkerState::kDead;
  Hear("scheduler", map);
  EXPECT_TRUE(Met(Event::kWorkerDies, State::kOpenClock));
  EXPECT_TRUE(Met(Event::kWorkerDies, State::kLateJoin));
  Hear("worker1", proto::Leave{});
  EXPECT_FALSE(Met(Event::kLeaves, State::kOpenClock));
  EXPECT_FALSE(Met(Event::kLeaves, State::kLateJoin));
}

TEST_F(MeetingsTest, EachRequestForATableIsAnsweredByItself) {
  Hear("worker0", proto::CreateTable{.request = 1});
  Hear("worker0", proto::CreateTable{.request = 2});
  Hear("scheduler", proto::TableReply{.request = 1}, "worker0");
  Tick("worker0", 1);
  EXPECT_TRUE(Met(Event::kTick, State::kCreate));
  Hear("scheduler", proto::TableReply{.request = 2}, "worker0");
  Hear("worker1", proto::Leave{});
  EXPECT_FALSE(Met(Event::kLeaves, State::kCreate));
}

TEST_F(MeetingsTest, ACheckpointLastsFromItsClockToItsFiles) {
  Hear("scheduler", proto::CheckpointPrepare{.checkpoint = 1}, "server0");
  Tick("worker0", 1);
  EXPECT_FALSE(Met(Event::kTick, State::kCheckpoint));
  const proto::CheckpointCut cut{.checkpoint = 2};
  Hear("scheduler", cut, "server0");
  Hear("scheduler", cut, "server1");
  Hear("scheduler", cut, "server1");
  EXPECT_FALSE(Met(Event::kCut, State::kCheckpoint));
  Tick("worker0", 2);
  EXPECT_TRUE(Met(Event::kTick, State::kCheckpoint));
  const proto::CheckpointWritten written{.checkpoint = 2};
  Hear("server1", written);
  EXPECT_TRUE(Met(Event::kWritten, State::kCheckpoint));
  Hear("server0", written);
  Hear("scheduler", cut, "server0");  // its report was not heard
  Hear("worker0", proto::Leave{});
  EXPECT_FALSE(Met(Event::kLeaves, State::kCheckpoint));
}

TEST_F(MeetingsTest, ACheckpointThatWasGivenUpIsOverWithTheNextQuestion) {
  Hear("scheduler", proto::CheckpointCut{.checkpoint = 2}, "server0");
  Hear("scheduler", proto::CheckpointPrepare{.checkpoint = 3}, "server0");
  Tick("worker0", 1);
  EXPECT_FALSE(Met(Event::kTick, State::kCheckpoint));
}

TEST_F(MeetingsTest, AHandoverLastsUntilTheNewHeadHasAllOrTheOldOneIsDead) {
  proto::ClusterMap map = Map(1);
  Hear("scheduler", map);
  map.version = map.epoch = 2;
  map.owners[0].server_rank = 1;
  Hear("scheduler", map);
  EXPECT_FALSE(Met(Event::kHandover, State::kHandover));
  proto::Replicate end{.shard = 0, .epoch = 2, .stream = 5, .entry = 7};
  end.kind = proto::LogEntryKind::kHandoverEnd;
  Hear("server0", end);
  Hear("server1", proto::ReplicateAck{.shard = 0, .stream = 5, .entry = 6});
  Tick("worker0", 1);
  EXPECT_TRUE(Met(Event::kTick, State::kHandover));
  Hear("server1", proto::ReplicateAck{.shard = 0, .stream = 5, .entry = 7});
  Hear("worker0", proto::CreateTable{.request = 1});
  EXPECT_FALSE(Met(Event::kCreate, State::kHandover));
  map.version = map.epoch = 3;
  map.owners[1].server_rank = 1;
  Hear("scheduler", map);
  EXPECT_FALSE(Met(Event::kHandover, State::kHandover));
  map.version = 4;
  map.servers[0].alive = false;
  Hear("scheduler", map);
  EXPECT_TRUE(Met(Event::kServerDies, State::kHandover));
  Hear("worker0", proto::Leave{});
  EXPECT_FALSE(Met(Event::kLeaves, State::kHandover));
}

TEST_F(MeetingsTest, AServerThatLeavesIsNotDead) {
  Restore();
  proto::ClusterMap map = Map(1);
  Hear("scheduler", map);
  Hear("scheduler", proto::NodeDown{.role = Role::kServer, .incarnation = 11, .left = true});
  map.version = 2;
  map.servers[1].alive = false;
  Hear("scheduler", map);
  EXPECT_FALSE(Happened(Event::kServerDies));
  map.version = 3;
  map.servers[0].alive = false;
  Hear("scheduler", map);
  EXPECT_TRUE(Happened(Event::kServerDies));
}

TEST_F(MeetingsTest, TheFirstSchedulerIsNotAnotherOne) {
  Restore();
  Hear("scheduler", Map(1));
  EXPECT_FALSE(Happened(Event::kSchedulerRestart));
  scheduler_is_dead_ = true;
  Tick("worker0", 1);
  EXPECT_TRUE(Met(Event::kTick, State::kSchedulerRestart));
  scheduler_is_dead_ = false;
  Hear("worker0", proto::Leave{});
  EXPECT_TRUE(Met(Event::kLeaves, State::kSchedulerRestart));
  Hear("scheduler", Map(2));
  EXPECT_TRUE(Happened(Event::kSchedulerRestart));
  EXPECT_FALSE(Met(Event::kSchedulerRestart, State::kSchedulerRestart));
}

TEST_F(MeetingsTest, AProcessThatJoinsAgainIsStillInItsClock) {
  Hear("worker0", proto::Join{});
  Push("worker0", 0);
  Hear("worker0", proto::Join{});
  Tick("worker1", 1);
  EXPECT_TRUE(Met(Event::kTick, State::kOpenClock));
  Hear("worker0", proto::Join{}, "scheduler", /*van=*/2);
  Hear("worker1", proto::Leave{});
  EXPECT_FALSE(Met(Event::kLeaves, State::kOpenClock));
}

TEST_F(MeetingsTest, OnlyAPushOfAWorkerIsRefused) {
  Restore();
  Refuse(1, proto::Op::kPull);
  EXPECT_FALSE(Happened(Event::kRefusal));
}

}  // namespace
}  // namespace leeway::simulation::meetings_test
