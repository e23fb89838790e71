// The membership under a scheduler that the test plays, on virtual time.
#include "node/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_transport.h"
#include "van/sim/sim_van.h"
#include "van/testing/test_world.h"

namespace leeway::node {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kScheduler[] = "sim://scheduler/0";
constexpr std::uint32_t kNode = 7;

std::string Text(const absl::Status& status) { return std::string(status.message()); }

// A scheduler that records messages and sends what the test gives it. It answers heartbeats unless
// told not to.
class ScriptedScheduler final : private van::Handler {
 public:
  ScriptedScheduler(runtime::SimWorld* world, van::SimNetwork* network, Role role,
                    const std::string& host)
      : host_(world->NewHost(host)),
        factory_(network->NewFactory(host)),
        runner_(host_->Spawn("loop")) {
    van::Identity identity;
    identity.role = role;
    identity.node = 1;
    identity.incarnation = host_->Random();
    van_ = factory_->New(runner_->loop(), identity, {}, this);
    EXPECT_TRUE(van_->Listen(absl::StrCat("sim://", host, "/0")).ok());
  }
  ~ScriptedScheduler() override { van_.reset(); }

  // To the connection that spoke last, heartbeats aside.
  void Say(const proto::AnyMessage& message) { Send(peer_, message); }
  void SayRaw(absl::string_view header) {
    EXPECT_TRUE(van_->Send(peer_, {.header = runtime::Buffer::CopyOf(header), .payload = {}}).ok());
  }
  void Drop(const absl::Status& why = absl::OkStatus()) { van_->Disconnect(peer_, why); }
  template <class Message>
  std::size_t Count() const {
    return All<Message>().size();
  }
  template <class Message>
  std::vector<Message> All() const {
    std::vector<Message> all;
    for (const proto::AnyMessage& one : heard_) {
      if (const auto* message = std::get_if<Message>(&one)) all.push_back(*message);
    }
    return all;
  }
  std::size_t connections() const { return identities_.size(); }  // that it has ever had
  const van::Identity& identity() const { return identities_.at(peer_); }

  bool answer_joins = true;
  int garbage_before_welcome = 0;
  bool answer_beats = true;
  proto::Welcome welcome = {.node = kNode,
                            .rank = 0,
                            .cluster = 0xc1,
                            .num_servers = 2,
                            .num_workers = 2,
                            .heartbeat_interval_ms = 500,
                            .failure_timeout_ms = 3000,
                            .block_bytes = 1 << 20};

 private:
  void OnPeerUp(van::PeerId peer, const van::Identity& identity) override {
    identities_[peer] = identity;
  }
  void OnPeerDown(van::PeerId, const absl::Status&) override {}
  void OnMessage(van::PeerId peer, van::Message raw) override {
    auto message = proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
    ASSERT_TRUE(message.ok()) << message.status();
    heard_.push_back(*message);
    if (const auto* beat = std::get_if<proto::Heartbeat>(&*message)) {
      if (answer_beats) Send(peer, proto::HeartbeatAck{beat->number});
      return;
    }
    peer_ = peer;
    if (!std::holds_alternative<proto::Join>(*message) || !answer_joins) return;
    if (garbage_before_welcome > 0) {
      --garbage_before_welcome;
      return SayRaw("garbage");
    }
    Say(welcome);
  }
  void Send(van::PeerId peer, const proto::AnyMessage& message) {
    EXPECT_TRUE(van_->Send(peer, {.header = proto::Encode(message), .payload = {}}).ok());
  }

  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<van::Van> van_;
  van::PeerId peer_ = 0;
  std::map<van::PeerId, van::Identity> identities_;
  std::vector<proto::AnyMessage> heard_;
};

class MembershipTest : public ::testing::Test, private Membership::Listener {
 protected:
  MembershipTest() { config_.scheduler = kScheduler; }
  ~MembershipTest() override {
    membership_.reset();
    scheduler_.reset();
  }

  void StartScheduler(Role role = Role::kScheduler, const std::string& host = "scheduler") {
    scheduler_ = std::make_unique<ScriptedScheduler>(&world_, &network_, role, host);
  }
  void CrashScheduler(const std::string& host = "scheduler") {
    network_.Kill(host);
    world_.Kill(host);
    scheduler_.reset();
  }
  // The scheduler is at none of them.
  void LoseSchedulerAndHearOfTenAddresses() {
    Join(Role::kWorker);
    CrashScheduler();
    world_.RunFor(absl::Seconds(1));
    for (int i = 0; i < 10; ++i) {
      membership_->OnSchedulerMoved(
          {.address = absl::StrCat("sim://nobody", i, "/0"), .cluster = 0xc1});
      world_.RunFor(absl::Milliseconds(100));
    }
  }
  void StartNode(Role role) {
    host_ = world_.NewHost("node");
    factory_ = network_.NewFactory("node");
    runner_ = host_->Spawn("role");
    Membership::Setup setup;
    setup.config = config_;
    setup.role = role;
    setup.incarnation = 99;
    if (role == Role::kServer) setup.endpoints = {"sim://node/0", "sim://node/1"};
    setup.host = host_.get();
    setup.loop = runner_->loop();
    setup.factory = factory_.get();
    Membership::Listener* const listener = this;
    membership_ = std::make_unique<Membership>(std::move(setup), listener);
    runner_->loop()->Post([this] { membership_->Start(); });
  }
  // A worker or server that is a member.
  void Join(Role role) {
    StartScheduler();
    StartNode(role);
    ASSERT_TRUE(RunUntil([&] { return welcomes_ == 1; }));
  }
  void Leave(absl::Duration timeout) {
    membership_->Leave(timeout, [this](absl::Status status) { left_ = std::move(status); });
  }
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit = absl::Minutes(2)) {
    return world_.RunUntil(done, limit).ok();
  }
  static proto::ClusterMap MapOf(std::uint64_t version) {
    proto::ClusterMap map;
    map.version = version;
    map.epoch = 1;
    map.owners = {{0, 0}};
    map.servers = {{.node = 2, .rank = 0, .alive = true, .endpoints = {"sim://server/0"}}};
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      map.workers.push_back({.node = kNode + rank, .rank = rank, .incarnation = 1 + rank});
    }
    return map;
  }
  static proto::NodeDown Down(std::uint32_t node, std::string reason) {
    proto::NodeDown down;
    down.node = node;
    down.role = Role::kWorker;
    down.reason = std::move(reason);
    return down;
  }

  runtime::SimWorld world_{3};
  van::SimNetwork network_{&world_};
  Config config_;
  std::unique_ptr<ScriptedScheduler> scheduler_;
  std::unique_ptr<runtime::Host> host_;
  std::unique_ptr<van::Factory> factory_;
  std::unique_ptr<runtime::LoopRunner> runner_;
  std::unique_ptr<Membership> membership_;

  int welcomes_ = 0;
  std::vector<std::uint64_t> maps_;  // versions
  std::vector<std::string> downs_;   // reasons
  std::vector<std::string> said_;    // names of other messages
  std::vector<absl::Status> overs_;
  std::optional<absl::Status> left_;
  std::vector<absl::Duration> answered_;  // how long after it had left
  int broken_ = 0;
  std::vector<bool> heard_;  // what it was told of the scheduler

 private:
  void OnWelcome(const proto::Welcome&) override { ++welcomes_; }
  void OnMap(std::shared_ptr<const proto::ClusterMap> map) override {
    maps_.push_back(map->version);
  }
  void OnNodeDown(const proto::NodeDown& down) override { downs_.push_back(down.reason); }
  void OnSchedulerMessage(proto::AnyMessage message) override {
    said_.emplace_back(proto::NameOf(message));
  }
  void OnOver(const absl::Status& why) override { overs_.push_back(why); }
  void OnSchedulerAnswered(absl::Time sent) override { answered_.push_back(world_.Now() - sent); }
  void OnHeartbeatBroken() override { ++broken_; }
  void OnSchedulerHeard(bool heard) override { heard_.push_back(heard); }
};

// ---- joining ----

TEST_F(MembershipTest, AJoinSaysWhoComesAndIsRepeatedUntilItIsAnswered) {
  config_.rank = 1;
  config_.num_servers = 2;
  config_.num_workers = 3;
  StartScheduler();
  scheduler_->answer_joins = false;
  StartNode(Role::kServer);
  world_.RunFor(absl::Seconds(1));
  const std::vector<proto::Join> joins = scheduler_->All<proto::Join>();
  EXPECT_GE(joins.size(), 4u);  // every 250 ms
  EXPECT_LE(joins.size(), 5u);
  EXPECT_EQ(joins[0].role, Role::kServer);
  EXPECT_EQ(joins[0].rank_wanted, 1);
  EXPECT_EQ(joins[0].num_workers, 3u);
  EXPECT_THAT(joins[0].endpoints, ElementsAre("sim://node/0", "sim://node/1"));
  EXPECT_EQ(membership_->Send(proto::StatusRequest{1}).code(),
            absl::StatusCode::kFailedPrecondition);
  scheduler_->answer_joins = true;
  ASSERT_TRUE(RunUntil([&] { return welcomes_ == 1; }));
  scheduler_->Say(scheduler_->welcome);  // the answer to an earlier one
  const std::size_t said = scheduler_->Count<proto::Join>();
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(welcomes_, 1);
  EXPECT_EQ(scheduler_->Count<proto::Join>(), said);
  EXPECT_TRUE(membership_->Send(proto::StatusRequest{1}).ok());
}

TEST_F(MembershipTest, ARefusalIsTheEnd) {
  StartScheduler();
  scheduler_->answer_joins = false;
  StartNode(Role::kWorker);
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }));
  scheduler_->Say(proto::Refused{absl::AlreadyExistsError("LEEWAY_RANK=1 is taken")});
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  world_.RunFor(absl::Minutes(2));
  ASSERT_EQ(overs_.size(), 1u);
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Text(overs_[0]), AllOf(HasSubstr(kScheduler), HasSubstr("refuses this worker"),
                                     HasSubstr("LEEWAY_RANK=1 is taken")));
}

TEST_F(MembershipTest, ASchedulerThatIsNotThereIsNamedAfterTheDeadline) {
  config_.connect_timeout = absl::Seconds(30);
  StartNode(Role::kWorker);
  world_.RunFor(absl::Seconds(29));
  EXPECT_TRUE(overs_.empty());
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(2)));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(overs_[0]), AllOf(HasSubstr(kScheduler), HasSubstr("LEEWAY_SCHEDULER"),
                                     HasSubstr("LEEWAY_CONNECT_TIMEOUT_MS")));
}

TEST_F(MembershipTest, ASchedulerThatNeverAnswersIsNamedAfterTheDeadline) {
  config_.connect_timeout = absl::Seconds(30);
  StartScheduler();
  scheduler_->answer_joins = false;
  StartNode(Role::kWorker);
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(31)));
  EXPECT_THAT(Text(overs_[0]), HasSubstr("no answer from the scheduler at sim://scheduler/0"));
}

// As a process that has stopped, or one whose port is open and that is no scheduler.
TEST_F(MembershipTest, OneThatTakesConnectionsAndSaysNothingGivesNoAnswer) {
  config_.connect_timeout = absl::Seconds(30);
  const std::unique_ptr<runtime::Host> host = world_.NewHost("scheduler");
  const std::unique_ptr<runtime::LoopRunner> runner = host->Spawn("loop");
  van::RawPeer mute(van::NewSimTransport(network_.state(), "scheduler", runner->loop()));
  ASSERT_TRUE(mute.transport().Listen(kScheduler).ok());
  StartNode(Role::kWorker);
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(31)));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(overs_[0]), AllOf(HasSubstr("no answer from the scheduler at"),
                                     HasSubstr("takes connections but does not answer")));
}

TEST(NotReachedAt, ALackOfThisProcessIsNotTheSchedulersFault) {
  EXPECT_EQ(NotReachedAt(absl::DeadlineExceededError("x")), "no scheduler at");
  EXPECT_EQ(NotReachedAt(absl::ResourceExhaustedError("out of file descriptors")),
            "cannot connect to the scheduler at");
}

TEST_F(MembershipTest, AfterTheDeadlineTheNodesThatAreMissingAreNamed) {
  config_.connect_timeout = absl::Seconds(30);
  StartScheduler();
  scheduler_->answer_joins = false;
  StartNode(Role::kReader);
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }));
  scheduler_->Say(proto::Refused{absl::UnavailableError("2 of 3 servers have joined")});
  world_.RunFor(absl::Seconds(29));
  EXPECT_TRUE(overs_.empty());
  EXPECT_GE(scheduler_->Count<proto::Join>(), 100u);
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(2)));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(overs_[0]), AllOf(HasSubstr("this reader"), HasSubstr(kScheduler),
                                     HasSubstr("2 of 3 servers have joined")));
}

// It may be known soon: machines of a cluster do not start all at once.
TEST_F(MembershipTest, AnUnknownHostNameIsAskedForUntilTheDeadline) {
  config_.scheduler = "sim://nowhere.invalid/0";
  config_.connect_timeout = absl::Seconds(30);
  StartNode(Role::kWorker);
  EXPECT_FALSE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(29)));
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(2)));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(overs_[0]), AllOf(HasSubstr("LEEWAY_SCHEDULER"), HasSubstr("nowhere.invalid")));
}

TEST_F(MembershipTest, APeerThatIsNoSchedulerIsNotJoined) {
  StartScheduler(Role::kServer);
  StartNode(Role::kWorker);
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }, absl::Seconds(1)));
  EXPECT_THAT(Text(overs_[0]), HasSubstr("LEEWAY_SCHEDULER=sim://scheduler/0 is a server"));
  EXPECT_EQ(scheduler_->Count<proto::Join>(), 0u);
}

// ---- maps ----

TEST_F(MembershipTest, AWorkerAcknowledgesEachNewerMapByItself) {
  Join(Role::kWorker);
  for (std::uint64_t version : {2, 4, 3, 4}) scheduler_->Say(MapOf(version));
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(maps_, ElementsAre(2, 4));
  std::vector<std::uint64_t> acknowledged;
  for (const proto::MapAck& ack : scheduler_->All<proto::MapAck>()) {
    acknowledged.push_back(ack.version);
  }
  EXPECT_THAT(acknowledged, ElementsAre(2, 4, 4, 4));  // again to a scheduler that says it again
}

TEST_F(MembershipTest, TheMapOfAnIncompleteClusterComesWhenAskedFor) {
  Join(Role::kWorker);
  membership_->AskForMap();
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::MapAck>() == 1; }));
  EXPECT_EQ(scheduler_->All<proto::MapAck>()[0].version, 0u);
  proto::ClusterMap map = MapOf(2);
  map.epoch = 0;
  map.owners.clear();
  scheduler_->Say(map);
  scheduler_->Say(MapOf(3));
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(maps_, ElementsAre(2, 3));
}

TEST_F(MembershipTest, AServerAcknowledgesWhenItSaysSo) {
  Join(Role::kServer);
  scheduler_->Say(MapOf(2));
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(maps_, ElementsAre(2));
  EXPECT_EQ(scheduler_->Count<proto::MapAck>(), 0u);
  membership_->AckMap(2);
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(scheduler_->Count<proto::MapAck>(), 1u);
}

TEST_F(MembershipTest, EachEndOfANodeIsToldOnceWhateverWasLost) {
  Join(Role::kWorker);
  scheduler_->Say(Down(8, "not heard for 10s"));
  scheduler_->Say(Down(8, "not heard for 10s"));
  proto::ClusterMap map = MapOf(5);
  map.workers[1].state = proto::WorkerState::kDead;
  map.workers[2].state = proto::WorkerState::kDead;
  scheduler_->Say(map);
  world_.RunFor(absl::Seconds(1));
  ASSERT_EQ(downs_.size(), 2u);  // 8 by its message, 9 by the map
  EXPECT_EQ(downs_[0], "not heard for 10s");
  EXPECT_THAT(maps_, ElementsAre(5));
}

TEST_F(MembershipTest, ANodeThatWasGivenUpLearnsItAndEnds) {
  Join(Role::kWorker);
  scheduler_->Say(Down(kNode, "not heard for 10s"));
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(overs_[0]), HasSubstr("has given up on this node: not heard for 10s"));
  EXPECT_TRUE(downs_.empty());
}

// ---- other messages ----

TEST_F(MembershipTest, OnlyMessagesForTheRoleAreHandedOn) {
  Join(Role::kWorker);
  scheduler_->Say(proto::TableReply{.request = 1, .result = absl::NotFoundError("none")});
  scheduler_->Say(proto::BarrierRelease{.name = "b", .number = 1});
  scheduler_->Say(proto::StatusReply{1});
  scheduler_->Say(proto::LeaveAck{});
  scheduler_->Say(proto::ClockAck{3});
  world_.RunFor(absl::Seconds(1));
  EXPECT_THAT(said_, ElementsAre("TableReply", "BarrierRelease"));
}

TEST_F(MembershipTest, AMalformedMessageBreaksTheConnectionWhichIsMadeAgain) {
  Join(Role::kWorker);
  scheduler_->SayRaw("garbage");
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() == 2; }));
  scheduler_->Say(MapOf(2));
  ASSERT_TRUE(RunUntil([&] { return !maps_.empty(); }));
  EXPECT_TRUE(overs_.empty());
  EXPECT_EQ(welcomes_, 1);
}

TEST_F(MembershipTest, AMalformedAnswerIsNotTheEndOfAJoiningNode) {
  StartScheduler();
  scheduler_->garbage_before_welcome = 3;
  StartNode(Role::kServer);
  ASSERT_TRUE(RunUntil([&] { return welcomes_ == 1; }));
  EXPECT_TRUE(overs_.empty());
  EXPECT_EQ(scheduler_->Count<proto::Join>(), 4u);
}

TEST_F(MembershipTest, OnlyMalformedAnswersEndItAtItsDeadline) {
  config_.connect_timeout = absl::Seconds(20);
  StartScheduler();
  scheduler_->garbage_before_welcome = 1 << 20;
  StartNode(Role::kServer);
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(overs_[0]), HasSubstr("what came was not understood"));
}

// ---- the connection ----

TEST_F(MembershipTest, ABrokenConnectionIsMadeAgainUnderTheNewIdentity) {
  Join(Role::kWorker);
  EXPECT_EQ(scheduler_->identity().cluster, 0u);
  world_.RunFor(absl::Seconds(2));
  scheduler_->Drop();
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() == 2; }));
  EXPECT_EQ(scheduler_->identity().cluster, 0xc1u);
  EXPECT_EQ(scheduler_->identity().node, kNode);
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(welcomes_, 1);
  EXPECT_TRUE(overs_.empty());
}

TEST_F(MembershipTest, ASchedulerStartedAnewIsNotTheOldOne) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(2));
  scheduler_->welcome.cluster = 0xc2;
  scheduler_->Drop();
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kAborted);
  EXPECT_THAT(Text(overs_[0]), HasSubstr("was started anew"));
}

TEST_F(MembershipTest, ASchedulerThatWantsToKnowNothingOfItIsTheEnd) {
  Join(Role::kWorker);
  scheduler_->Drop(absl::FailedPreconditionError("another cluster"));
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  EXPECT_THAT(Text(overs_[0]), AllOf(HasSubstr(kScheduler), HasSubstr("another cluster")));
}

TEST_F(MembershipTest, ASchedulerThatComesBackFindsTheSameNode) {
  Join(Role::kServer);
  world_.RunFor(absl::Seconds(2));
  CrashScheduler();
  world_.RunFor(absl::Minutes(2));
  EXPECT_TRUE(overs_.empty());
  EXPECT_THAT(membership_->DescribeScheduler(), HasSubstr("has been silent for 2m"));
  StartScheduler();
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }, absl::Seconds(3)));
  EXPECT_EQ(scheduler_->identity().incarnation, 99u);
  EXPECT_EQ(scheduler_->identity().node, kNode);
  world_.RunFor(absl::Seconds(10));
  EXPECT_GE(scheduler_->Count<proto::Heartbeat>(), 10u);
  EXPECT_EQ(membership_->DescribeScheduler(), "the scheduler at sim://scheduler/0");
  EXPECT_EQ(welcomes_, 1);
  scheduler_->Say(MapOf(2));
  ASSERT_TRUE(RunUntil([&] { return !maps_.empty(); }));
}

// It would not get the map, as nothing is sent over that connection otherwise.
TEST_F(MembershipTest, ASchedulerThatComesBackIsFoundThoughItsEndWasNotHeard) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(2));
  network_.Cut("scheduler", "node");
  CrashScheduler();
  world_.RunFor(absl::Seconds(1));
  network_.HealAll();
  StartScheduler();
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }, absl::Seconds(2)));
  scheduler_->Say(MapOf(2));
  ASSERT_TRUE(RunUntil([&] { return !maps_.empty(); }));
  EXPECT_EQ(welcomes_, 1);
}

TEST_F(MembershipTest, ASchedulerThatComesBackElsewhereIsFoundOnceAServerSaysWhere) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(2));
  CrashScheduler();
  world_.RunFor(absl::Seconds(10));
  StartScheduler(Role::kScheduler, "scheduler2");
  membership_->OnSchedulerMoved({.address = "sim://scheduler2/0", .cluster = 0xc2});
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(scheduler_->Count<proto::Join>(), 0u);  // another cluster's
  membership_->OnSchedulerMoved({.address = "sim://nobody/0", .cluster = 0xc1});
  membership_->OnSchedulerMoved({.address = "sim://scheduler2/0", .cluster = 0xc1});
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Heartbeat>() > 3; }));
  EXPECT_EQ(membership_->scheduler_address(), "sim://scheduler2/0");
  world_.RunFor(absl::Minutes(1));
  EXPECT_TRUE(overs_.empty());
  // A SchedulerMoved does not end a connection to a scheduler that lives.
  membership_->OnSchedulerMoved({.address = "sim://nobody/0", .cluster = 0xc1});
  world_.RunFor(absl::Seconds(5));
  EXPECT_EQ(membership_->scheduler_address(), "sim://scheduler2/0");
}

// Heartbeats go to where the scheduler was last joined, so it is the link that finds it elsewhere.
// A scheduler that comes back takes nodes for dead that it has not heard for the failure timeout.
TEST_F(MembershipTest, OfSeveralAddressesAllAreTriedWithinTheFailureTimeout) {
  Join(Role::kWorker);
  std::vector<std::string> hosts = {"scheduler"};
  std::size_t at = 0;
  for (const std::string host : {"scheduler1", "scheduler2", "scheduler3"}) {
    hosts.push_back(host);
    for (int phase = 0; phase < 20; ++phase) {
      SCOPED_TRACE(absl::StrCat(hosts.size(), " addresses, phase ", phase));
      world_.RunFor(absl::Seconds(2));
      CrashScheduler(hosts[at]);
      membership_->OnSchedulerMoved(
          {.address = absl::StrCat("sim://", host, "/0"), .cluster = 0xc1});
      world_.RunFor(absl::Seconds(10) + phase * absl::Milliseconds(300));
      at = (at + 1) % hosts.size();
      StartScheduler(Role::kScheduler, hosts[at]);
      EXPECT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; },
                           absl::Milliseconds(scheduler_->welcome.failure_timeout_ms)));
      ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Heartbeat>() > 0; }));
    }
  }
  EXPECT_TRUE(overs_.empty());
}

TEST_F(MembershipTest, OfManyAddressesTheFirstAndTheNewestAreTried) {
  LoseSchedulerAndHearOfTenAddresses();
  std::set<std::string> tried;
  for (int i = 0; i < 1000; ++i) {
    tried.insert(membership_->scheduler_address());
    world_.RunFor(absl::Milliseconds(50));
  }
  EXPECT_EQ(tried.size(), 4u);
  EXPECT_TRUE(tried.contains("sim://scheduler/0"));
  EXPECT_TRUE(tried.contains("sim://nobody9/0"));
}

TEST_F(MembershipTest, WhereTheSchedulerWasAtFirstIsNotForgotten) {
  LoseSchedulerAndHearOfTenAddresses();
  StartScheduler();
  EXPECT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }, absl::Minutes(1)));
  EXPECT_TRUE(overs_.empty());
}

// The heartbeats' connection never stood to the scheduler that was joined: nothing has broken.
TEST_F(MembershipTest, ASchedulerThatCameBackBeforeTheFirstHeartbeatIsJoined) {
  Join(Role::kServer);
  network_.Cut("scheduler", "node");
  world_.RunFor(absl::Seconds(1));
  ASSERT_EQ(scheduler_->Count<proto::Heartbeat>(), 0u);
  CrashScheduler();
  StartScheduler();
  network_.Heal("scheduler", "node");
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Heartbeat>() > 0; }));
  EXPECT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }, absl::Seconds(5)));
  EXPECT_TRUE(overs_.empty());
}

// Where packets are thrown away on the way, no connection breaks either.
TEST_F(MembershipTest, AJoinThatNobodyAnswersIsSaidOnAnotherConnection) {
  Join(Role::kServer);
  world_.RunFor(absl::Seconds(2));
  CrashScheduler();
  StartScheduler();
  scheduler_->answer_joins = false;
  ASSERT_TRUE(RunUntil([&] {
    return scheduler_->Count<proto::Join>() > 0 && scheduler_->Count<proto::Heartbeat>() > 0;
  }));
  const std::size_t before = scheduler_->connections();
  world_.RunFor(absl::Seconds(5));
  EXPECT_GT(scheduler_->connections(), before);
  EXPECT_TRUE(overs_.empty());
}

// A machine that is gone resets no connections.
TEST_F(MembershipTest, AConnectionThatNothingComesOverIsMadeAnewWhereTheSchedulerIsSaidToBe) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(2));
  std::unique_ptr<ScriptedScheduler> gone = std::move(scheduler_);
  gone->answer_beats = gone->answer_joins = false;
  StartScheduler(Role::kScheduler, "scheduler2");
  membership_->OnSchedulerMoved({.address = "sim://scheduler2/0", .cluster = 0xc1});
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Heartbeat>() > 3; }));
  EXPECT_EQ(membership_->scheduler_address(), "sim://scheduler2/0");
  world_.RunFor(absl::Seconds(30));
  EXPECT_EQ(membership_->DescribeScheduler(), "the scheduler at sim://scheduler2/0");
  EXPECT_TRUE(overs_.empty());
  gone.reset();
}

// The attempt began where nothing came through, and would go on for seconds after that.
TEST_F(MembershipTest, AnAttemptToConnectThatWasLostEndsWhenHeartbeatsAreAnswered) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(2));
  CrashScheduler();
  network_.Cut("node", "scheduler");
  world_.RunFor(absl::Seconds(1));
  StartScheduler();
  membership_->OnSchedulerMoved({.address = kScheduler, .cluster = 0xc1});
  world_.RunFor(absl::Milliseconds(100));
  network_.Heal("node", "scheduler");
  ASSERT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Heartbeat>() > 0; }));
  EXPECT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 0; }, absl::Seconds(1)));
  EXPECT_TRUE(overs_.empty());
}

TEST_F(MembershipTest, ItConnectsWhereHeartbeatsAreAnsweredRatherThanElsewhere) {
  Join(Role::kWorker);
  membership_->OnSchedulerMoved({.address = "sim://nobody/0", .cluster = 0xc1});
  world_.RunFor(absl::Milliseconds(100));
  scheduler_->Drop();  // soon after it came up, so that the next address is tried
  ASSERT_TRUE(RunUntil([&] { return membership_->scheduler_address() == "sim://nobody/0"; }));
  EXPECT_TRUE(RunUntil([&] { return scheduler_->Count<proto::Join>() > 1; }, absl::Seconds(2)));
  EXPECT_EQ(membership_->scheduler_address(), kScheduler);
}

TEST_F(MembershipTest, AnAttemptToConnectHasItsTimeThoughHeartbeatsAreAnswered) {
  Join(Role::kWorker);
  van::LinkFaults far;
  far.delay_min = far.delay_max = absl::Milliseconds(150);
  network_.SetFaults(far);
  world_.RunFor(absl::Seconds(2));
  const std::size_t before = scheduler_->connections();
  for (int i = 0; i < 5; ++i) {
    scheduler_->Drop();
    world_.RunFor(absl::Milliseconds(2100));
  }
  EXPECT_EQ(scheduler_->connections(), before + 5);
}

TEST_F(MembershipTest, SomebodyElseAtTheSchedulersAddressIsNotItsEnd) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(2));
  CrashScheduler();
  world_.RunFor(absl::Seconds(2));
  StartScheduler(Role::kServer);
  world_.RunFor(absl::Seconds(10));
  EXPECT_TRUE(overs_.empty());
  EXPECT_EQ(scheduler_->Count<proto::Join>(), 0u);
}

// ---- heartbeats ----

TEST_F(MembershipTest, ItBeatsAsTheSchedulerSaysAndGivesUpOnALongSilence) {
  config_.heartbeat_interval = absl::Seconds(60);  // not the scheduler's
  config_.failure_timeout = absl::Minutes(10);
  config_.scheduler_timeout = absl::Seconds(20);
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(10));
  EXPECT_NEAR(static_cast<double>(scheduler_->Count<proto::Heartbeat>()), 20, 2);
  EXPECT_TRUE(overs_.empty());
  EXPECT_EQ(membership_->DescribeScheduler(), "the scheduler at sim://scheduler/0");
  scheduler_->answer_beats = scheduler_->answer_joins = false;
  const absl::Time silent = world_.Now();
  world_.RunFor(absl::Seconds(10));
  EXPECT_TRUE(overs_.empty());  // it goes on without it
  EXPECT_THAT(membership_->DescribeScheduler(), HasSubstr("has been silent for 1"));
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  EXPECT_GT(world_.Now() - silent, absl::Seconds(19));
  EXPECT_LT(world_.Now() - silent, absl::Seconds(22));
  EXPECT_EQ(overs_[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Text(overs_[0]),
              AllOf(HasSubstr(kScheduler), HasSubstr("LEEWAY_SCHEDULER_TIMEOUT_MS")));
}

// The scheduler's promise counts from that time.
TEST_F(MembershipTest, ItSaysWhenTheHeartbeatLeftThatWasAnswered) {
  Join(Role::kServer);
  world_.RunFor(absl::Seconds(1));  // the connection for heartbeats stands
  van::LinkFaults slow;
  slow.delay_min = slow.delay_max = absl::Milliseconds(1200);  // several are under way
  network_.SetFaults("scheduler", "node", slow);
  world_.RunFor(absl::Seconds(5));
  answered_.clear();
  world_.RunFor(absl::Seconds(5));
  EXPECT_GE(answered_.size(), 9u);
  for (const absl::Duration ago : answered_) {
    EXPECT_GE(ago, absl::Milliseconds(1200));
    EXPECT_LT(ago, absl::Milliseconds(1210));
  }
  scheduler_->answer_beats = false;
  world_.RunFor(absl::Seconds(2));
  answered_.clear();
  world_.RunFor(absl::Seconds(60));
  EXPECT_TRUE(answered_.empty());
  scheduler_->answer_beats = true;
  network_.SetFaults("scheduler", "node", {});
  world_.RunFor(absl::Seconds(5));
  EXPECT_FALSE(answered_.empty());
  EXPECT_EQ(broken_, 0);
  CrashScheduler();
  world_.RunFor(absl::Seconds(1));
  EXPECT_EQ(broken_, 1);
}

TEST_F(MembershipTest, ASchedulerThatSpeaksIsNotSilentWhateverBecomesOfTheBeats) {
  Join(Role::kWorker);
  world_.RunFor(absl::Seconds(1));
  scheduler_->answer_beats = false;
  const std::size_t before = scheduler_->connections();
  for (int second = 1; second <= 20; ++second) {
    scheduler_->Say(proto::BarrierRelease{.name = "b", .number = 1});
    world_.RunFor(absl::Seconds(1));
  }
  EXPECT_TRUE(overs_.empty());
  EXPECT_TRUE(heard_.empty());
  EXPECT_GT(scheduler_->connections(), before) << "another one for the beats may be answered";
}

// A server that does not hear the scheduler may no longer be a head.
TEST_F(MembershipTest, ItSaysWhenTheSchedulerIsSilentAndWhenItIsHeardAgain) {
  Join(Role::kServer);
  world_.RunFor(absl::Seconds(1));
  scheduler_->answer_beats = scheduler_->answer_joins = false;
  world_.RunFor(absl::Seconds(10));
  EXPECT_THAT(heard_, ElementsAre(false));
  scheduler_->answer_beats = scheduler_->answer_joins = true;
  world_.RunFor(absl::Seconds(10));
  EXPECT_THAT(heard_, ElementsAre(false, true));
}

// ---- the end ----

TEST_F(MembershipTest, LeaveIsRepeatedUntilItIsKnown) {
  Join(Role::kWorker);
  Leave(absl::Seconds(30));
  world_.RunFor(absl::Seconds(1));
  EXPECT_GE(scheduler_->Count<proto::Leave>(), 4u);  // every 250 ms
  EXPECT_FALSE(left_.has_value());
  scheduler_->Say(proto::LeaveAck{});
  ASSERT_TRUE(RunUntil([&] { return left_.has_value(); }));
  EXPECT_TRUE(left_->ok());
  EXPECT_TRUE(overs_.empty());
}

TEST_F(MembershipTest, LeavingEndsWithTheSchedulerOrInTime) {
  Join(Role::kWorker);
  Leave(absl::Seconds(30));
  world_.RunFor(absl::Seconds(1));
  scheduler_->Say(proto::Shutdown{absl::AbortedError("worker 0 failed")});
  ASSERT_TRUE(RunUntil([&] { return left_.has_value(); }));
  EXPECT_TRUE(left_->ok());  // whatever the others end with
  Leave(absl::Seconds(30));
  left_.reset();
  ASSERT_TRUE(RunUntil([&] { return left_.has_value(); }, absl::Seconds(1)));
}

TEST_F(MembershipTest, LeavingUnheardNamesTheSchedulerAfterTheTimeout) {
  Join(Role::kServer);
  network_.Cut("node", "scheduler");
  Leave(absl::Seconds(2));  // sooner than heartbeats are missed
  ASSERT_TRUE(RunUntil([&] { return left_.has_value(); }, absl::Seconds(3)));
  EXPECT_EQ(left_->code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Text(*left_), HasSubstr(kScheduler));
}

TEST_F(MembershipTest, LeavingBeforeAnybodyKnowsIsAtOnce) {
  StartNode(Role::kWorker);
  world_.RunFor(absl::Seconds(1));
  Leave(absl::Seconds(30));
  ASSERT_TRUE(RunUntil([&] { return left_.has_value(); }, absl::Seconds(1)));
  EXPECT_TRUE(left_->ok());
}

TEST_F(MembershipTest, TheEndOfTheClusterIsHandedOn) {
  Join(Role::kServer);
  scheduler_->Say(proto::Shutdown{});
  ASSERT_TRUE(RunUntil([&] { return !overs_.empty(); }));
  EXPECT_TRUE(overs_[0].ok());
  EXPECT_EQ(membership_->Send(proto::StatusRequest{1}).code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(MembershipTest, NothingIsCalledOnceItIsGone) {
  Join(Role::kWorker);
  scheduler_->Say(proto::Shutdown{});
  scheduler_->Say(MapOf(2));
  membership_.reset();
  world_.RunFor(absl::Minutes(1));
  EXPECT_TRUE(overs_.empty());
  EXPECT_TRUE(maps_.empty());
}

}  // namespace
}  // namespace leeway::node
