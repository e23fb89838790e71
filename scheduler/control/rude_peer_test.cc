// Peers that break the protocol: the scheduler drops, refuses or ignores them, counts it, and
// serves the others as before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/log/log.h"
#include "scheduler/testing/test_cluster.h"

namespace leeway::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A bare van with a script.
class RudePeer final : private van::Handler {
 public:
  RudePeer(TestCluster* cluster, const std::string& name, Role role, std::uint64_t incarnation)
      : factory_(cluster->network.NewFactory(name)),
        host_(cluster->world.NewHost(name)),
        runner_(host_->Spawn("rude")) {
    van::Identity identity;
    identity.role = role;
    identity.incarnation = incarnation;
    van::Handler* const handler = this;
    van_ = factory_->New(runner_->loop(), identity, van::Limits(), handler);
    peer_ = *van_->Connect(cluster->config.scheduler, absl::Seconds(10));
  }
  void Say(const proto::AnyMessage& message) { SayRaw(proto::Encode(message)); }
  void SayRaw(runtime::Buffer header) {
    van::Message message;
    message.header = std::move(header);
    (void)van_->Send(peer_, std::move(message));
  }
  bool down() const { return down_; }
  template <class Message>
  std::vector<Message> Heard() const {
    std::vector<Message> all;
    for (const proto::AnyMessage& message : heard_) {
      if (const auto* it = std::get_if<Message>(&message)) all.push_back(*it);
    }
    return all;
  }
  const std::string& json() const { return json_; }

 private:
  void OnPeerUp(van::PeerId, const van::Identity&) override {}
  void OnPeerDown(van::PeerId, const absl::Status&) override { down_ = true; }
  void OnMessage(van::PeerId, van::Message raw) override {
    const auto message = proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
    ASSERT_TRUE(message.ok()) << message.status();
    heard_.push_back(*message);
    if (!raw.payload.empty()) json_ = std::string(raw.payload[0].text());
  }

  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  bool down_ = false;
  std::vector<proto::AnyMessage> heard_;
  std::string json_;
};

proto::Join JoinAs(Role role) {
  proto::Join join;
  join.role = role;
  join.num_servers = 1;
  join.num_workers = 1;
  if (role == Role::kServer) join.endpoints = {"sim://rude/0"};
  return join;
}

class RudePeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime::SetLogLevel(runtime::LogLevel::kError);
    cluster_.StartScheduler();
    Pass();
  }
  void TearDown() override { runtime::SetLogLevel(runtime::LogLevel::kInfo); }
  void Pass() { cluster_.world.RunFor(absl::Milliseconds(50)); }
  std::uint64_t Counter(const std::string& name) {
    return nlohmann::json::parse(cluster_.scheduler->StatusJson())["counters"][name];
  }
  // A cluster of others still forms.
  void ExpectUnharmed() {
    if (cluster_.servers.empty()) cluster_.Start(Role::kServer);
    if (cluster_.workers.empty()) cluster_.Start(Role::kWorker);
    cluster_.RunUntilComplete();
    EXPECT_EQ(cluster_.workers[0]->epoch(), 1u);
    EXPECT_FALSE(cluster_.servers[0]->over.has_value());
  }

  TestCluster cluster_{1, 1, 1};
};

TEST_F(RudePeerTest, GarbageIsDroppedAndCounted) {
  RudePeer peer(&cluster_, "rude", Role::kWorker, 77);
  peer.SayRaw(runtime::Buffer::CopyOf("this is no header of ours, not even nearly"));
  Pass();
  EXPECT_TRUE(peer.down());
  EXPECT_EQ(Counter("malformed_messages"), 1u);
  EXPECT_EQ(Counter("offenders_dropped"), 1u);
  ExpectUnharmed();
}

TEST_F(RudePeerTest, EveryMessageFromAStrangerInEveryRoleIsSurvived) {
  const std::vector<proto::AnyMessage> messages = {
      proto::Hello{},
      proto::Reject{absl::InternalError("x")},
      proto::Goodbye{},
      JoinAs(Role::kTool),
      JoinAs(Role::kScheduler),
      proto::Welcome{.node = 9, .block_bytes = 4096},
      proto::Refused{absl::InternalError("x")},
      proto::ClusterMap{},
      proto::MapAck{99},
      proto::Heartbeat{2, 77, 1},
      proto::HeartbeatAck{1},
      proto::NodeDown{.role = Role::kServer},
      proto::Leave{},
      proto::LeaveAck{},
      proto::Shutdown{},
      proto::BarrierEnter{.name = "b", .number = 1},
      proto::BarrierRelease{.name = "b", .number = 1},
      proto::CreateTable{1, TableSpec::Dense("w", {1})},
      proto::OpenTable{1, "w"},
      proto::InstallTable{1, TableSpec::Dense("w", {1})},
      proto::InstallTableReply{.table = 1},
      proto::ClockTick{},
      proto::ClockAck{},
      proto::StatusReply{1},
      proto::EnterClock{},
      proto::EnterClockReply{},
      proto::Replicate{.epoch = 1, .entry = 1, .kind = proto::LogEntryKind::kTransferEnd},
      proto::ReplicateAck{},
      proto::ReplicaReady{.epoch = 1},
      proto::LinkReport{.epoch = 1, .server = 1},
      proto::LeadNow{.epoch = 1},
      proto::LoadReport{{{.shard = 0}}},
      proto::Admin{.request = 1, .command = "no-such-command"},
      proto::CheckpointPrepare{1},
      proto::CheckpointPrepared{1},
      proto::CheckpointCut{.checkpoint = 1, .directory = "d"},
      proto::CheckpointWritten{1},
      proto::RestoreShards{1, "d"},
      proto::RestoreShardsReply{1},
      proto::CodecReport{.table = 1, .costs = {1}, .link_bytes_per_s = 1},
      proto::SchedulerMoved{"tcp://127.0.0.1:1", 1}};
  std::uint64_t incarnation = 100;
  for (Role role : {Role::kUnknown, Role::kScheduler, Role::kServer, Role::kWorker, Role::kTool}) {
    for (const proto::AnyMessage& message : messages) {
      RudePeer peer(&cluster_, "rude", role, ++incarnation);
      peer.Say(message);
      Pass();
    }
  }
  EXPECT_GT(Counter("forbidden_messages") + Counter("malformed_messages"), 30u);
  EXPECT_GT(Counter("out_of_turn_messages"), 20u);
  ExpectUnharmed();
}

TEST_F(RudePeerTest, MessagesOfAnotherRoleAreIgnored) {
  RudePeer server(&cluster_, "rude", Role::kServer, 77);
  RudePeer worker(&cluster_, "rude2", Role::kWorker, 78);
  server.Say(JoinAs(Role::kServer));
  worker.Say(JoinAs(Role::kWorker));
  Pass();
  ASSERT_EQ(server.Heard<proto::Welcome>().size(), 1u);
  server.Say(proto::MapAck{server.Heard<proto::ClusterMap>().back().version});
  server.Say(proto::BarrierEnter{.name = "b", .number = 1});
  server.Say(proto::CreateTable{1, TableSpec::Dense("w", {1})});
  worker.Say(proto::InstallTableReply{.table = 1});
  worker.Say(proto::MapAck{12345});
  Pass();
  EXPECT_EQ(Counter("out_of_turn_messages"), 3u);
  EXPECT_TRUE(server.Heard<proto::BarrierRelease>().empty());
  EXPECT_TRUE(server.Heard<proto::TableReply>().empty());
  EXPECT_FALSE(server.down());
}

TEST_F(RudePeerTest, JoiningTwiceGetsTheSameAnswerAndInAnotherRoleARefusal) {
  RudePeer peer(&cluster_, "rude", Role::kWorker, 77);
  peer.Say(JoinAs(Role::kWorker));
  peer.Say(JoinAs(Role::kWorker));
  Pass();
  const auto welcomes = peer.Heard<proto::Welcome>();
  ASSERT_EQ(welcomes.size(), 2u);
  EXPECT_EQ(welcomes[0].node, welcomes[1].node);
  peer.Say(JoinAs(Role::kServer));
  RudePeer twin(&cluster_, "twin", Role::kServer, 77);
  twin.Say(JoinAs(Role::kServer));
  Pass();
  EXPECT_EQ(peer.Heard<proto::Refused>().size(), 1u);
  ASSERT_EQ(twin.Heard<proto::Refused>().size(), 1u);
  EXPECT_THAT(std::string(twin.Heard<proto::Refused>()[0].why.message()),
              HasSubstr("joined as worker 0 already"));
}

TEST_F(RudePeerTest, ABarrierOfAGroupOneIsNotInIsRefused) {
  RudePeer peer(&cluster_, "rude", Role::kWorker, 77);
  peer.Say(JoinAs(Role::kWorker));
  peer.Say(proto::BarrierEnter{.name = "b", .group = Group::kServers, .number = 1});
  Pass();
  ASSERT_EQ(peer.Heard<proto::BarrierRelease>().size(), 1u);
  EXPECT_EQ(peer.Heard<proto::BarrierRelease>()[0].result.code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RudePeerTest, TablesBeforeTheClusterIsCompleteAreNotMade) {
  RudePeer peer(&cluster_, "rude", Role::kWorker, 77);
  peer.Say(JoinAs(Role::kWorker));
  peer.Say(proto::CreateTable{1, TableSpec::Dense("w", {1})});
  Pass();
  ASSERT_EQ(peer.Heard<proto::TableReply>().size(), 1u);
  EXPECT_EQ(peer.Heard<proto::TableReply>()[0].result.code(), absl::StatusCode::kUnavailable);
}

TEST_F(RudePeerTest, AToolMayAskForTheStatus) {
  RudePeer peer(&cluster_, "rude", Role::kTool, 77);
  peer.Say(proto::StatusRequest{5});
  Pass();
  ASSERT_EQ(peer.Heard<proto::StatusReply>().size(), 1u);
  EXPECT_EQ(peer.Heard<proto::StatusReply>()[0].request, 5u);
  EXPECT_EQ(nlohmann::json::parse(peer.json())["role"], "scheduler");
}

TEST_F(RudePeerTest, AStrangerIsNotToldTheClustersIdByTheStatus) {
  ExpectUnharmed();
  const std::uint64_t id = cluster_.workers[0]->welcome->cluster;
  RudePeer peer(&cluster_, "rude", Role::kTool, 77);
  peer.Say(proto::StatusRequest{5});
  Pass();
  EXPECT_THAT(peer.json(), AllOf(HasSubstr("\"workers\""), Not(HasSubstr(absl::StrCat(id))),
                                 Not(HasSubstr(absl::StrCat(absl::Hex(id))))));
}

// Its Shutdown may have been lost.
TEST_F(RudePeerTest, AHeartbeatOfADrainedServerIsAnsweredWithShutdown) {
  ExpectUnharmed();
  RudePeer peer(&cluster_, "rude", Role::kServer, 77);
  proto::Join join = JoinAs(Role::kServer);
  join.elastic = true;
  peer.Say(join);
  Pass();
  ASSERT_EQ(peer.Heard<proto::Welcome>().size(), 1u);
  const proto::Welcome welcome = peer.Heard<proto::Welcome>()[0];
  const auto tool = cluster_.Ask("drain", {absl::StrCat("server:", welcome.rank)});
  ASSERT_TRUE(cluster_.RunUntil([&] { return tool->answer.has_value(); }, absl::Seconds(5)));
  ASSERT_TRUE(tool->answer->ok()) << *tool->answer;
  Pass();
  EXPECT_EQ(peer.Heard<proto::Shutdown>().size(), 1u);
  peer.Say(proto::Heartbeat{welcome.node, 77, 1});
  Pass();
  EXPECT_EQ(peer.Heard<proto::Shutdown>().size(), 2u);
}

TEST_F(RudePeerTest, AHeartbeatOfADeadNodeIsAnsweredWithNodeDown) {
  cluster_.Start(Role::kServer);
  RudePeer peer(&cluster_, "rude", Role::kWorker, 77);
  peer.Say(JoinAs(Role::kWorker));
  Pass();
  ASSERT_EQ(peer.Heard<proto::Welcome>().size(), 1u);
  const std::uint32_t node = peer.Heard<proto::Welcome>()[0].node;
  peer.Say(proto::Heartbeat{node, 77, 1});
  Pass();
  EXPECT_EQ(peer.Heard<proto::HeartbeatAck>().size(), 1u);
  cluster_.world.RunFor(absl::Seconds(12));
  const std::size_t told = peer.Heard<proto::NodeDown>().size();
  EXPECT_EQ(told, 1u);
  // The NodeDown may have been lost.
  peer.Say(proto::Heartbeat{node, 77, 2});
  Pass();
  EXPECT_EQ(peer.Heard<proto::NodeDown>().size(), 2u);
  peer.Say(JoinAs(Role::kWorker));
  Pass();
  ASSERT_EQ(peer.Heard<proto::Refused>().size(), 1u);
  EXPECT_TRUE(absl::IsAborted(peer.Heard<proto::Refused>()[0].why));
  EXPECT_EQ(peer.Heard<proto::Welcome>().size(), 1u);
}

}  // namespace
}  // namespace leeway::scheduler
