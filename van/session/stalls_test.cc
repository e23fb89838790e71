// Tests of stalled connections: a stall is reported once, and so is the recovery.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "van/session/stall_watch.h"
#include "van/testing/tcp_attacker.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using News = StallWatch::News;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(StallWatch, TellsOnceThatNothingGetsOnAndOnceThatItDoes) {
  const absl::Duration limit = absl::Seconds(5);
  StallWatch watch;
  EXPECT_EQ(watch.Look(true, 0, At(100), limit), News::kNone);
  EXPECT_EQ(watch.Look(true, 0, At(104.9), limit), News::kNone);
  EXPECT_EQ(watch.Look(true, 0, At(105), limit), News::kStalled);
  EXPECT_EQ(watch.since(), At(100));
  EXPECT_EQ(watch.Look(true, 0, At(200), limit), News::kNone) << "said before";
  EXPECT_EQ(watch.Look(true, 1, At(201), limit), News::kRecovered);
  EXPECT_EQ(watch.stuck_for(), absl::Seconds(101));
  EXPECT_EQ(watch.Look(true, 2, At(204), limit), News::kNone);
  EXPECT_EQ(watch.Look(true, 2, At(208.9), limit), News::kNone);
  EXPECT_EQ(watch.Look(false, 2, At(300), limit), News::kNone) << "nothing is under way";
  EXPECT_EQ(watch.Look(true, 2, At(301), limit), News::kNone) << "something new is";
  EXPECT_EQ(watch.Look(true, 2, At(306), limit), News::kStalled);
  EXPECT_EQ(watch.Look(false, 2, At(307), limit), News::kRecovered);
}

TEST(StallWatch, TimeInWhichTheProcessItselfStoodStillDoesNotCount) {
  StallWatch watch;
  watch.Look(true, 0, At(100), absl::Seconds(5));
  watch.PutOff(absl::Seconds(60));
  EXPECT_EQ(watch.Look(true, 0, At(164), absl::Seconds(5)), News::kNone);
  EXPECT_EQ(watch.Look(true, 0, At(165), absl::Seconds(5)), News::kStalled);
}

// A server (host0) and a worker (host1) on virtual time.
class StallsTest : public testing::Test {
 protected:
  class Named final : public Recorder {
   public:
    std::string NameOf(PeerId, const Identity& identity) const override {
      return identity.role == Role::kWorker ? "worker 7" : "";
    }
  };

  StallsTest() {
    server_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
    worker_ = std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
    peer_ = worker_->ConnectTo(server_.get(), server_->Listen());
  }
  void Send(std::size_t bytes = 1000) {
    ASSERT_TRUE(worker_->van->Send(peer_, TextMessage("x", {std::string(bytes, 'x')})).ok());
  }
  std::vector<std::string> LinesWithin(double seconds) {
    ::testing::internal::CaptureStderr();
    world_->RunFor(absl::Seconds(seconds));
    return absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  }
  SimNetwork& network() { return *world_->network(); }

  std::unique_ptr<TestWorld> world_ = TestWorld::New(NetKind::kSim);
  std::unique_ptr<Node> server_, worker_;
  PeerId peer_ = 0;
};

TEST_F(StallsTest, APeerThatTakesNothingIsToldOfOnceAndAgainWhenItDoes) {
  network().Cut("host1", "host0");
  Send();
  EXPECT_THAT(LinesWithin(4.9), IsEmpty());
  EXPECT_THAT(worker_->van->stalls(), IsEmpty());
  const absl::Time begun = world_->loop(1)->Now() - absl::Seconds(4.9);
  EXPECT_THAT(LinesWithin(2),
              Contains(AllOf(HasSubstr("warning"), HasSubstr("sim://host0/"), HasSubstr("server"),
                             HasSubstr("is stalled"), HasSubstr("bytes for it"))));
  ASSERT_EQ(worker_->van->stalls().size(), 1u);
  EXPECT_GE(worker_->van->stalls()[0].since, begun);
  EXPECT_LE(worker_->van->stalls()[0].since, begun + absl::Seconds(1.1));
  EXPECT_GE(worker_->van->stalls()[0].send_bytes, 1000u);
  EXPECT_EQ(worker_->van->counters().stalls, 1u);
  EXPECT_THAT(LinesWithin(60), IsEmpty()) << "said before";
  network().HealAll();
  EXPECT_THAT(LinesWithin(3), Contains(AllOf(HasSubstr("goes on; it was stalled for 1m"),
                                             HasSubstr("sim://host0/"))));
  EXPECT_THAT(worker_->van->stalls(), IsEmpty());
  EXPECT_EQ(worker_->van->counters().stalls, 1u);
}

TEST_F(StallsTest, BothSidesOfAnInterruptedConnectionTell) {
  network().Cut("host1", "host0");
  network().Cut("host0", "host1");
  Send();
  ASSERT_TRUE(server_->van->Send(server_->recorder->ups[0].peer, TextMessage("y")).ok());
  const std::vector<std::string> lines = LinesWithin(7);
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("server"), HasSubstr("is stalled"))));
  EXPECT_THAT(lines, Contains(AllOf(HasSubstr("worker"), HasSubstr("is stalled"))));
  EXPECT_EQ(worker_->van->stalls().size(), 1u);
  EXPECT_EQ(server_->van->stalls().size(), 1u);
}

TEST_F(StallsTest, TheOwnerNamesItsPeers) {
  Node server(world_.get(), world_->NewProcess(), nullptr, std::make_unique<Named>());
  server.van = world_->factory(server.process)
                   ->New(world_->loop(server.process), IdentityOf(Role::kServer, 4), Limits(),
                         server.recorder.get());
  server.recorder->admits = server.van.get();
  Node worker(world_.get(), IdentityOf(Role::kWorker, 5));
  worker.ConnectTo(&server, server.Listen());
  network().Cut("host2", "host3");
  ASSERT_TRUE(server.van->Send(server.recorder->ups[0].peer, TextMessage("y")).ok());
  EXPECT_THAT(LinesWithin(7), Contains(HasSubstr("the connection to worker 7 (sim://")));
}

// Peers report what they have taken twice per window, and a window is large. Before that they are
// asked, and one that answers is not stalled.
TEST_F(StallsTest, APeerThatTakesEverythingAndSaysNothingIsNotStalled) {
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) {
    Send();
    world_->RunFor(absl::Seconds(0.7));
  }
  world_->RunFor(absl::Seconds(30));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(worker_->van->counters().stalls, 0u);
}

TEST_F(StallsTest, MessagesThatGetLostAreNoStall) {
  network().Cut("host1", "host0");
  Send();
  world_->RunFor(absl::Seconds(3));
  network().HealAll();
  EXPECT_THAT(LinesWithin(60), IsEmpty());
}

TEST_F(StallsTest, AStalledConnectionThatEndsSaysSo) {
  network().Cut("host1", "host0");
  Send();
  LinesWithin(7);
  ::testing::internal::CaptureStderr();
  worker_->van->Disconnect(peer_, absl::OkStatus());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("has ended; it was stalled for"));
}

// Over TCP the receiving side sees that a message has arrived in part.
TEST(TcpStallsTest, HalfAMessageIsToldOfByWhoWaitsForTheRest) {
  const std::unique_ptr<TestWorld> world = TestWorld::New(NetKind::kTcp);
  Limits limits;
  limits.stall_time = absl::Milliseconds(200);
  Node server(world.get(), IdentityOf(Role::kServer, 2), limits);
  const std::string address = server.Listen();
  TcpAttacker peer(address);
  peer.Say(Greeting() + HelloMessage(kTestCluster));
  ASSERT_TRUE(world->RunUntil([&] { return !server.recorder->ups.empty(); }));
  const std::string message = Framed(Kind::kData, "header", {std::string(100'000, 'x')});
  peer.Say(message.substr(0, 50'000));
  ASSERT_TRUE(world->RunUntil([&] { return server.van->counters().stalls == 1; }));
  ASSERT_EQ(server.van->stalls().size(), 1u);
  EXPECT_EQ(server.van->stalls()[0].send_bytes, 0u);
  EXPECT_THAT(server.van->stalls()[0].peer, HasSubstr("tcp://127.0.0.1:"));
  peer.Say(message.substr(50'000));
  ASSERT_TRUE(world->RunUntil([&] { return server.van->stalls().empty(); }));
  EXPECT_EQ(server.recorder->messages.size(), 1u);
}

}  // namespace
}  // namespace leeway::van
