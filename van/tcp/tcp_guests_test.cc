// Tests of guests (peers that have not joined): what they may ask for, and what they cannot keep
// others from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "runtime/base/unique_fd.h"
#include "runtime/config/address.h"
#include "van/session/guest_meter.h"
#include "van/testing/server_and_client.h"
#include "van/testing/tcp_attacker.h"
#include "van/transport.h"

namespace leeway::van {
namespace {

using testing::HasSubstr;

class TcpGuestsTest : public testing::Test, protected ServerAndClient {
 protected:
  TcpGuestsTest() : ServerAndClient(NetKind::kTcp) {}

  // Says hello, and so becomes a peer of which nothing else is known.
  std::unique_ptr<TcpAttacker> NewGuest() {
    auto guest = std::make_unique<TcpAttacker>(address_);
    const std::size_t ups = server_->recorder->ups.size();
    guest->Say(Greeting() + HelloMessage());
    EXPECT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == ups + 1; }));
    return guest;
  }
  // The most connections that are accepted in that time.
  static double MostIn(absl::Duration time) {
    return absl::FDivDuration(AcceptMeter::kSaved + time * AcceptMeter::kShare,
                              AcceptMeter::kWork) +
           100;
  }
  // For a second: connects, sends `words` and disconnects. Returns how long it took.
  absl::Duration FloodWith(const std::string& words) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(runtime::PortOf(address_)));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const absl::Time begin = absl::Now();
    while (absl::Now() - begin < absl::Seconds(1)) {
      const runtime::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to));
      // Fails if it is not connected yet; nothing is sent then.
      static_cast<void>(::send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL));
      world_->RunFor(absl::Microseconds(10));
    }
    ExpectClientUnharmed();
    return absl::Now() - begin;
  }
  PeerId LastPeer() const { return server_->recorder->ups.back().peer; }
  bool RunUntilGone(const TcpAttacker& guest) {
    return RunUntil([&] {
      world_->RunFor(absl::Milliseconds(1));
      return guest.Gone();
    });
  }
};

std::string Messages(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += Framed(Kind::kData, "status, please");
  return bytes;
}

TEST_F(TcpGuestsTest, GetASmallShareOfTheTime) {
  StartServer();
  MakeMessagesCost(absl::Milliseconds(2));
  const auto guest = NewGuest(), another = NewGuest();
  guest->Say(Messages(1000));
  another->Say(Messages(1000));
  const absl::Time begin = absl::Now();
  while (absl::Now() - begin < absl::Seconds(2)) ExpectClientUnharmed({});
  const absl::Duration took = absl::Now() - begin;
  // The saved allowance, the share of the time, and one overdraft.
  const absl::Duration most =
      GuestMeter::kSaved + took * GuestMeter::kShare + absl::Milliseconds(10);
  EXPECT_LT(absl::Milliseconds(2) * handled_, most);
  EXPECT_GT(worked_, 20 * absl::Milliseconds(2));
  // The guests are not dropped for it: their messages wait.
  EXPECT_TRUE(server_->recorder->downs.empty());
  EXPECT_EQ(server_->van->counters().guests_dropped, 0u);
}

TEST_F(TcpGuestsTest, AreNotChargedTheTimeInWhichTheThreadDidNotRun) {
  StartServer();
  int handled = 0;
  server_->recorder->on_message = [&](PeerId, Message) {
    absl::SleepFor(GuestMeter::kSaved);  // as if other processes had the core
    ++handled;
  };
  const auto guest = NewGuest();
  guest->Say(Messages(20));
  const absl::Time begin = absl::Now();
  ASSERT_TRUE(RunUntil([&] { return handled == 20; }));
  EXPECT_LT(absl::Now() - begin, 20 * GuestMeter::kSaved / GuestMeter::kShare / 2);
}

TEST_F(TcpGuestsTest, TakeTurns) {
  StartServer();
  MakeMessagesCost(GuestMeter::kSaved);
  const auto greedy = NewGuest(), modest = NewGuest();
  const PeerId modest_peer = LastPeer();
  std::vector<PeerId> order;
  server_->recorder->on_message = [&, inner = server_->recorder->on_message](PeerId peer,
                                                                             Message message) {
    if (peer != client_at_server_) order.push_back(peer);
    inner(peer, std::move(message));
  };
  greedy->Say(Messages(100));
  ASSERT_TRUE(RunUntil([&] { return !order.empty(); }));
  modest->Say(Messages(1));
  ASSERT_TRUE(RunUntil([&] { return order.size() >= 3; }));
  EXPECT_THAT(order, testing::Contains(modest_peer));
}

// A tool or a new member is not behind all connections that ask again and again.
TEST_F(TcpGuestsTest, ANewOneGoesBeforeThoseThatHaveAskedForMuch) {
  StartServer();
  MakeMessagesCost(absl::Milliseconds(1));
  std::vector<PeerId> order;
  server_->recorder->on_message = [&, inner = server_->recorder->on_message](PeerId peer,
                                                                             Message message) {
    if (peer != client_at_server_) order.push_back(peer);
    inner(peer, std::move(message));
  };
  std::vector<std::unique_ptr<TcpAttacker>> greedy;
  for (int i = 0; i < 20; ++i) {
    greedy.push_back(NewGuest());
    greedy.back()->Say(Messages(50));
  }
  ASSERT_TRUE(RunUntil([&] { return order.size() >= 60; }));
  // One whose hello was interrupted by other processes may seem to have caused much work itself.
  std::size_t fewest = 1000;
  for (int tries = 0; tries < 5 && fewest > 5; ++tries) {
    const auto newcomer = NewGuest();
    const PeerId its_peer = LastPeer();
    const std::size_t before = order.size();
    newcomer->Say(Messages(1));
    ASSERT_TRUE(RunUntil([&] { return testing::Value(order, testing::Contains(its_peer)); }));
    fewest = std::min(fewest, order.size() - before);
  }
  EXPECT_LE(fewest, 5u);
}

TEST_F(TcpGuestsTest, AnAdmittedPeerIsServedAsEverybodyElse) {
  StartServer();
  MakeMessagesCost(absl::Milliseconds(1));
  const auto guest = NewGuest();
  guest->Say(Messages(600));
  ASSERT_TRUE(RunUntil([&] { return handled_ > 0; }));
  server_->van->Admit(LastPeer());
  EXPECT_TRUE(RunUntil([&] { return handled_ == 600; }));
}

TEST_F(TcpGuestsTest, OfAMemberThatIsHeldNothingIsHandedOverUntilItIsReleased) {
  StartServer();
  MakeMessagesCost(absl::ZeroDuration());
  const auto member = NewGuest();
  const PeerId peer = LastPeer();
  EXPECT_FALSE(server_->van->Hold(peer));  // a guest cannot be held by its owner
  server_->van->Admit(peer);
  ASSERT_TRUE(server_->van->Hold(peer));
  member->Say(Messages(30));
  for (int i = 0; i < 50; ++i) ExpectClientUnharmed({});
  EXPECT_EQ(handled_, 0);
  server_->van->Release(peer);
  EXPECT_TRUE(RunUntil([&] { return handled_ == 30; }));
  // It can be held between two messages that came together.
  server_->recorder->on_message = [&, inner = server_->recorder->on_message](PeerId from,
                                                                             Message message) {
    inner(from, std::move(message));
    const bool enough = from == peer && handled_ == 40;
    EXPECT_TRUE(!enough || server_->van->Hold(peer));
  };
  member->Say(Messages(30));
  ASSERT_TRUE(RunUntil([&] { return handled_ == 40; }));
  for (int i = 0; i < 50; ++i) ExpectClientUnharmed({});
  EXPECT_EQ(handled_, 40);
  server_->van->Release(peer);
  EXPECT_TRUE(RunUntil([&] { return handled_ == 60; }));
}

TEST_F(TcpGuestsTest, OneThatDoesNotReadIsDropped) {
  Limits limits;
  limits.guest_bytes_max = 100'000;
  StartServer(limits);
  const auto guest = NewGuest();
  const PeerId peer = LastPeer();
  const std::string status(30'000, 's');
  int sent = 0;
  // The system buffers some of it, but the guest has not taken that.
  while (server_->van->Send(peer, TextMessage(status)).ok()) ++sent;
  EXPECT_EQ(sent, 3);
  ASSERT_TRUE(RunUntil([&] { return !server_->recorder->downs.empty(); }));
  EXPECT_THAT(std::string(server_->recorder->downs[0].why.message()), HasSubstr("does not read"));
  EXPECT_EQ(server_->van->counters().guests_dropped, 1u);
  ExpectClientUnharmed();
}

TEST_F(TcpGuestsTest, TogetherTheyKeepNoMoreThanTheirBudget) {
  Limits limits;
  limits.guest_bytes_max = 100'000;
  limits.guests_bytes_max = 250'000;
  StartServer(limits);
  std::vector<std::unique_ptr<TcpAttacker>> guests;
  for (int i = 0; i < 10; ++i) {
    guests.push_back(NewGuest());
    server_->van->Send(LastPeer(), TextMessage(std::string(50'000 + i, 's'))).IgnoreError();
  }
  // The guests with most unread bytes are dropped, the last one is not.
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->downs.size() >= 6; }));
  EXPECT_FALSE(server_->recorder->IsDown(LastPeer()));
  EXPECT_EQ(server_->recorder->downs.size(), 6u);
  ExpectClientUnharmed();
}

TEST_F(TcpGuestsTest, ALargeAnswerGoesToOneThatReads) {
  StartServer();
  const auto guest = NewGuest();
  EXPECT_TRUE(server_->van->Send(LastPeer(), TextMessage(std::string(5 << 20, 's'))).ok());
}

TEST_F(TcpGuestsTest, OfTooManyTheMostSilentGoes) {
  Limits limits;
  limits.guests_max = 3;
  StartServer(limits);
  ExpectClientUnharmed();  // it has sent a message then, and does not count as silent
  const auto first = NewGuest(), second = NewGuest(), third = NewGuest();
  const PeerId second_peer = server_->recorder->ups[2].peer;
  // None has been silent for long yet.
  const TcpAttacker early(address_);
  ASSERT_TRUE(RunUntilGone(early));
  world_->RunFor(absl::Milliseconds(1100));
  first->Say(Messages(1));
  world_->RunFor(absl::Milliseconds(20));
  const auto fourth = NewGuest();
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->downs.size() == 1; }));
  EXPECT_EQ(server_->recorder->downs[0].peer, second_peer);
  EXPECT_THAT(std::string(server_->recorder->downs[0].why.message()), HasSubstr("silent"));
  ExpectClientUnharmed();
  // A member is accepted.
  Node member(world_.get(), IdentityOf(Role::kWorker, 9));
  member.ConnectTo(server_.get(), address_);
}

TEST_F(TcpGuestsTest, OnesThatHaveGoneCountNoMore) {
  Limits limits;
  limits.guests_max = 3;
  StartServer(limits);
  for (std::size_t gone = 1; gone <= 5; ++gone) {
    auto guest = NewGuest();
    guest->Reset();
    guest.reset();
    ASSERT_TRUE(RunUntil([&] { return server_->recorder->downs.size() == gone; }));
  }
}

// Every process can learn a cluster's id and state it.
TEST_F(TcpGuestsTest, APeerWithTheClustersIdIsAGuestUntilTheOwnerKnowsIt) {
  Limits limits;
  limits.guests_max = 3;
  StartServer(limits);
  ExpectClientUnharmed();
  TcpAttacker member(address_);
  member.Say(Greeting() + HelloMessage(kTestCluster) + Messages(1));
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->ups.size() == 2; }));
  server_->recorder->admits = nullptr;
  std::vector<std::unique_ptr<TcpAttacker>> others;
  for (int i = 0; i < 30; ++i) {
    others.push_back(std::make_unique<TcpAttacker>(address_));
    others.back()->Say(Greeting() + HelloMessage(kTestCluster) + Messages(1));
    world_->RunFor(absl::Milliseconds(150));
  }
  std::size_t open = 0;
  for (const auto& connection : others) open += !connection->Gone();
  EXPECT_LE(open, 3u);
  EXPECT_GE(server_->van->counters().guests_dropped, 2u);
  world_->RunFor(absl::Milliseconds(1100));
  const auto guest = NewGuest();  // e.g. a tool that asks for the status
  EXPECT_FALSE(server_->recorder->IsDown(LastPeer()));
  EXPECT_FALSE(member.Gone());
  ExpectClientUnharmed();
}

// Its owner limits its work. It makes room where there are too many.
TEST_F(TcpGuestsTest, AReaderIsServedAtOnceAndCounts) {
  Limits limits;
  limits.guests_max = 1;
  StartServer(limits);
  MakeMessagesCost(absl::Milliseconds(1));
  const auto reader = NewGuest();
  server_->van->AdmitReader(LastPeer());
  reader->Say(Messages(600));
  EXPECT_TRUE(RunUntil([&] { return handled_ == 600; }));
  world_->RunFor(absl::Milliseconds(1100));
  const auto another = NewGuest();
  EXPECT_TRUE(RunUntilGone(*reader));
}

TEST_F(TcpGuestsTest, OneThatIsKeptIsLimitedAndStays) {
  Limits limits;
  limits.guests_max = 1;
  StartServer(limits);
  MakeMessagesCost(absl::Milliseconds(1));
  const auto kept = NewGuest();
  server_->van->KeepGuest(LastPeer());
  kept->Say(Messages(600));
  ASSERT_TRUE(RunUntil([&] { return handled_ > 0; }));
  world_->RunFor(absl::Milliseconds(1100));
  EXPECT_LT(handled_, 200);
  const auto another = NewGuest();
  EXPECT_FALSE(kept->Gone());
}

TEST_F(TcpGuestsTest, TheClustersIdIsToldToThoseThatSayIt) {
  StartServer();
  EXPECT_EQ(client_->recorder->ups.at(0).identity.cluster, kTestCluster);
  Identity identity = IdentityOf(Role::kTool, 4);
  identity.cluster = 0;
  Node stranger(world_.get(), identity);
  stranger.ConnectTo(server_.get(), address_);
  EXPECT_EQ(stranger.recorder->ups.at(0).identity.cluster, 0u);
}

TEST_F(TcpGuestsTest, SayNothingLong) {
  StartServer();
  const auto guest = NewGuest();
  guest->Say(Framed(Kind::kData, std::string(kGuestFrameBytesMax, 'x')));
  ASSERT_TRUE(RunUntilGone(*guest));
  ExpectClientUnharmed();
}

// A guest that disconnects while it is held is forgotten.
TEST_F(TcpGuestsTest, OneThatGoesWhileItIsHeldIsForgotten) {
  StartServer();
  MakeMessagesCost(GuestMeter::kSaved);
  auto guest = NewGuest();
  guest->Say(Messages(1000));
  ASSERT_TRUE(RunUntil([&] { return handled_ >= 1; }));
  guest->Reset();
  guest.reset();
  ASSERT_TRUE(RunUntil([&] { return server_->recorder->downs.size() == 1; }));
  ExpectClientUnharmed();
}

TEST_F(TcpGuestsTest, AFloodOfConnectionsIsAcceptedBitByBit) {
  StartServer();
  const absl::Duration took = FloodWith("");
  EXPECT_LT(static_cast<double>(server_->van->counters().handshakes_failed), MostIn(took));
  EXPECT_GT(server_->van->counters().handshakes_failed, 100u);
}

// The cluster's id is no secret.
TEST_F(TcpGuestsTest, AFloodOfConnectionsThatOnlySayHelloIsAcceptedBitByBit) {
  StartServer();
  server_->recorder->admits = nullptr;
  const absl::Duration took = FloodWith(Greeting() + HelloMessage(kTestCluster));
  EXPECT_LT(static_cast<double>(server_->recorder->ups.size()), MostIn(took));
  EXPECT_GT(server_->recorder->ups.size(), 20u);
}

}  // namespace
}  // namespace leeway::van
