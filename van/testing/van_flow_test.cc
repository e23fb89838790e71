// Tests of flow control: the bytes under way stay bounded, no message is lost, and none waits for
// ever.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "van/session/flow.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

TEST(SendFlow, CountsWhatIsUnderWay) {
  SendFlow flow(100);
  EXPECT_TRUE(flow.MaySend(100));
  EXPECT_TRUE(flow.MaySend(1000)) << "alone, whatever its size";
  flow.OnSend(60);
  EXPECT_TRUE(flow.MaySend(40));
  EXPECT_FALSE(flow.MaySend(41));
  EXPECT_FALSE(flow.MaySend(~0ull));
  EXPECT_TRUE(flow.OnConsumed(30));
  EXPECT_EQ(flow.in_flight(), 30u);
  EXPECT_TRUE(flow.OnConsumed(10)) << "old news";
  EXPECT_EQ(flow.in_flight(), 30u);
  EXPECT_FALSE(flow.OnConsumed(61)) << "more than was sent";
}

TEST(SendFlow, AsksTwiceAWindowAndWhenNothingElseWill) {
  SendFlow flow(100);
  int asked = 0;
  for (int i = 0; i < 10; ++i) {
    flow.OnSend(10);
    if (flow.TakeAsk()) ++asked;
  }
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(flow.TakeAskWhenBlocked()) << "the answer is under way";
  flow.OnConsumed(100);
  flow.OnSend(40);
  EXPECT_FALSE(flow.TakeAsk());
  EXPECT_TRUE(flow.TakeAskWhenBlocked());
  EXPECT_FALSE(flow.TakeAskWhenBlocked());
}

TEST(SendFlow, APeerOnTheSameHostIsSentFourLargeMessagesAhead) {
  constexpr std::uint64_t kLarge = 1 << 20;
  SendFlow flow(64 << 20);
  flow.SetSameHost(true);
  for (std::uint64_t i = 0; i < SendFlow::kSameHostLarge; ++i) {
    EXPECT_TRUE(flow.MaySend(kLarge)) << i;
    flow.OnSend(kLarge);
  }
  EXPECT_FALSE(flow.MaySend(kLarge));
  EXPECT_FALSE(flow.MaySend(1)) << "they are as much as may be of small ones, too";
  EXPECT_TRUE(flow.OnConsumed(kLarge - 1));
  EXPECT_TRUE(flow.MaySend(1));
  EXPECT_FALSE(flow.MaySend(kLarge)) << "the first is still under way";
  EXPECT_TRUE(flow.OnConsumed(kLarge));
  EXPECT_TRUE(flow.MaySend(kLarge));
  flow.SetSameHost(false);
  flow.OnSend(kLarge);
  EXPECT_TRUE(flow.MaySend(kLarge)) << "far away again";
}

TEST(SendFlow, APeerOnTheSameHostIsSentManySmallMessagesAhead) {
  constexpr std::uint64_t kSmall = 1000;
  SendFlow flow(64 << 20);
  flow.SetSameHost(true);
  std::uint64_t sent = 0;
  for (; flow.MaySend(kSmall); ++sent) flow.OnSend(kSmall);
  EXPECT_EQ(sent, SendFlow::kSameHostBytes / kSmall);
}

TEST(SendFlow, APeerOnTheSameHostIsAskedBeforeItHasAllItMay) {
  SendFlow flow(64 << 20);
  flow.SetSameHost(true);
  std::uint64_t asked_at = 0;
  for (std::uint64_t i = 1; flow.MaySend(512 << 10); ++i) {
    flow.OnSend(512 << 10);
    if (flow.TakeAsk()) asked_at = i;
  }
  EXPECT_EQ(asked_at, 3u);
  SendFlow narrow(1000);  // a smaller window still limits
  narrow.SetSameHost(true);
  narrow.OnSend(500);
  EXPECT_TRUE(narrow.TakeAsk());
  EXPECT_FALSE(narrow.MaySend(501));
}

class VanFlowTest : public testing::TestWithParam<NetKind> {
 protected:
  std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
};

TEST_P(VanFlowTest, AReceiverThatStandsStillBoundsWhatIsUnderWay) {
  constexpr int kMessages = 200;
  Limits limits;
  limits.send_window_bytes = 100'000;
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3), limits);
  int got = 0;
  server.recorder->on_message = [&](PeerId, Message message) {
    EXPECT_EQ(std::string(message.header.text()), absl::StrCat(got++));
  };
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  world_->Freeze(server.process);
  DoneProbe done;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(
        worker.van->Send(peer, TextMessage(absl::StrCat(i), {std::string(10'000, 'x')}), done.New())
            .ok());
  }
  EXPECT_FALSE(worker.van->Writable(peer));
  world_->RunFor(absl::Milliseconds(500));
  EXPECT_FALSE(worker.van->Writable(peer));
  EXPECT_EQ(got, 0);
  EXPECT_LE(worker.van->counters().bytes_sent, limits.send_window_bytes);
  EXPECT_GT(worker.van->counters().bytes_sent, limits.send_window_bytes / 2);
  world_->Thaw(server.process);
  ASSERT_TRUE(world_->RunUntil([&] { return got == kMessages && done.state().called == kMessages; },
                               absl::Minutes(10)));
  ASSERT_TRUE(world_->RunUntil([&] { return worker.van->Writable(peer); }));
  EXPECT_EQ(done.state().dropped, 0);
}

// The limit is only for the dialling side: answers of the dialled side are taken as they come.
TEST_P(VanFlowTest, LittleIsUnderWayToWhoWasDialledOnTheSameMachine) {
  constexpr std::uint64_t kMessages = 100, kBytes = 100'000;
  const bool same_host =
      GetParam() == NetKind::kTcp || GetParam() == NetKind::kShm || GetParam() == NetKind::kMixed;
  Node server(world_.get(), IdentityOf(Role::kServer, 2));
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3));
  const PeerId there = worker.ConnectTo(&server, server.Listen());
  const PeerId back = server.recorder->ups[0].peer;
  const auto send_many = [&](Node& from, PeerId to) {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(from.van->Send(to, TextMessage("m", {std::string(kBytes, 'x')})).ok());
    }
  };
  world_->Freeze(server.process);
  send_many(worker, there);
  if (same_host) {
    EXPECT_LE(worker.van->counters().bytes_sent, SendFlow::kSameHostBytes);
    EXPECT_GE(worker.van->counters().bytes_sent, SendFlow::kSameHostBytes - 2 * kBytes);
  } else {
    EXPECT_GE(worker.van->counters().bytes_sent, kMessages * kBytes);
  }
  world_->Thaw(server.process);
  ASSERT_TRUE(world_->RunUntil([&] { return server.recorder->messages.size() == kMessages; }));
  world_->Freeze(worker.process);
  send_many(server, back);
  EXPECT_GE(server.van->counters().bytes_sent, kMessages * kBytes);
  world_->Thaw(worker.process);
  ASSERT_TRUE(world_->RunUntil([&] { return worker.recorder->messages.size() == kMessages; }));
}

TEST_P(VanFlowTest, MessagesOfEverySizeGetThroughASmallWindowWithoutWaiting) {
  constexpr int kMessages = 500;
  Limits limits;
  limits.send_window_bytes = 10'000;
  Node server(world_.get(), IdentityOf(Role::kServer, 2));  // with another window of its own
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3), limits);
  int got = 0;
  server.recorder->on_message = [&](PeerId, Message) { ++got; };
  const PeerId peer = worker.ConnectTo(&server, server.Listen());
  const absl::Time start = world_->loop(worker.process)->Now();
  for (int i = 0; i < kMessages; ++i) {
    const std::size_t size = static_cast<std::size_t>(i) * 7919 % 20'000;  // up to two windows
    ASSERT_TRUE(worker.van->Send(peer, TextMessage("m", {std::string(size, 'x')})).ok());
  }
  ASSERT_TRUE(world_->RunUntil([&] { return got == kMessages; }));
  if (GetParam() == NetKind::kSim) {
    // A round trip takes 0.1 ms; asking only after 200 ms would take far longer than this.
    EXPECT_LT(world_->loop(worker.process)->Now() - start, absl::Milliseconds(150));
  }
}

TEST_P(VanFlowTest, BothSidesMayBeBlockedAtOnce) {
  constexpr int kMessages = 300;
  Limits limits;
  limits.send_window_bytes = 20'000;
  Node server(world_.get(), IdentityOf(Role::kServer, 2), limits);
  Node worker(world_.get(), IdentityOf(Role::kWorker, 3), limits);
  const PeerId there = worker.ConnectTo(&server, server.Listen());
  const PeerId back = server.recorder->ups[0].peer;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(worker.van->Send(there, TextMessage("m", {std::string(9'000, 'x')})).ok());
    ASSERT_TRUE(server.van->Send(back, TextMessage("m", {std::string(9'000, 'x')})).ok());
  }
  EXPECT_TRUE(world_->RunUntil([&] {
    return server.recorder->messages.size() == kMessages &&
           worker.recorder->messages.size() == kMessages;
  }));
}

INSTANTIATE_TEST_SUITE_P(Nets, VanFlowTest, testing::ValuesIn(kAllNets),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
