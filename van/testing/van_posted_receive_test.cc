// Tests of receiving in place: answers are received directly into posted memory, over every
// transport that can do that, and like any other message over the others.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/memory/sanitized.h"
#include "van/posted_receive.h"
#include "van/testing/test_world.h"

namespace leeway::van {
namespace {

constexpr std::size_t kFrame = 300'000;

// Byte i is seed + 31 i. Cut out of one pattern, because making hundreds of frames byte by byte
// takes seconds with a sanitizer.
std::string Frame(char seed) {
  static const std::string* const pattern = [] {
    auto* bytes = new std::string(kFrame + 256, '\0');
    for (std::size_t i = 0; i < bytes->size(); ++i) (*bytes)[i] = static_cast<char>(i * 31);
    return bytes;
  }();
  constexpr unsigned kInverseOf31 = 223;  // modulo 256
  return pattern->substr(static_cast<unsigned char>(seed) * kInverseOf31 % 256, kFrame);
}

std::span<std::byte> BytesOf(std::string& text) {
  return {reinterpret_cast<std::byte*>(text.data()), text.size()};
}

// ---- the registry ----

class PostedReceivesTest : public testing::Test {
 protected:
  std::vector<std::pair<PeerId, std::uint64_t>> revoked_;
  std::shared_ptr<PostedReceives> posted_ = PostedReceives::New(
      [this](PeerId peer, std::uint64_t token) { revoked_.emplace_back(peer, token); });
  std::string memory_ = std::string(64, '.');
};

TEST_F(PostedReceivesTest, IsFoundByPeerTokenAndLength) {
  const ReceiveHandle handle = posted_->Post(1, 7, BytesOf(memory_));
  EXPECT_EQ(posted_->Find(2, 7, 64), nullptr);
  EXPECT_EQ(posted_->Find(1, 8, 64), nullptr);
  EXPECT_EQ(posted_->Find(1, 7, 63), nullptr);
  EXPECT_EQ(posted_->Find(1, 7, 65), nullptr);
  ASSERT_NE(posted_->Find(1, 7, 64), nullptr);
  EXPECT_EQ(posted_->Find(1, 7, 64)->to(), BytesOf(memory_).data());
  EXPECT_TRUE(handle.awaits(1));
  EXPECT_FALSE(handle.awaits(2));
}

TEST_F(PostedReceivesTest, IsGivenToOneFrameAtATime) {
  const ReceiveHandle handle = posted_->Post(1, 7, BytesOf(memory_));
  EXPECT_FALSE(handle.busy());
  {
    const auto first = posted_->Find(1, 7, 64);
    EXPECT_TRUE(handle.busy());
    EXPECT_EQ(posted_->Find(1, 7, 64), nullptr);
  }
  EXPECT_FALSE(handle.busy());
  EXPECT_NE(posted_->Find(1, 7, 64), nullptr);
}

TEST_F(PostedReceivesTest, RevokedItIsNowhere) {
  ReceiveHandle handle = posted_->Post(1, 7, BytesOf(memory_));
  const auto receive = posted_->Find(1, 7, 64);
  handle.Revoke();
  EXPECT_EQ(receive->to(), nullptr);
  EXPECT_EQ(posted_->Find(1, 7, 64), nullptr);
  EXPECT_EQ(revoked_, (std::vector<std::pair<PeerId, std::uint64_t>>{{1, 7}}));
  handle.Revoke();
  EXPECT_EQ(revoked_.size(), 1u);
}

TEST_F(PostedReceivesTest, AnsweredItIsRevokedWithoutAWord) {
  ReceiveHandle handle = posted_->Post(1, 7, BytesOf(memory_));
  EXPECT_EQ(posted_->Answered(1, 8), nullptr);
  EXPECT_EQ(posted_->Answered(1, 7), BytesOf(memory_).data());
  EXPECT_EQ(posted_->Answered(1, 7), nullptr);
  EXPECT_FALSE(handle.awaits(1));
  EXPECT_EQ(posted_->Find(1, 7, 64), nullptr);
  handle.Revoke();
  EXPECT_TRUE(revoked_.empty());
}

TEST_F(PostedReceivesTest, TheLaterOfTwoWithOneTokenCounts) {
  std::string other(64, '.');
  ReceiveHandle first = posted_->Post(1, 7, BytesOf(memory_));
  const ReceiveHandle second = posted_->Post(1, 7, BytesOf(other));
  first.Revoke();
  EXPECT_TRUE(revoked_.empty());
  ASSERT_NE(posted_->Find(1, 7, 64), nullptr);
  EXPECT_EQ(posted_->Find(1, 7, 64)->to(), BytesOf(other).data());
}

TEST_F(PostedReceivesTest, NobodyIsToldWherePeerOrVanHasGone) {
  ReceiveHandle handle = posted_->Post(1, 7, BytesOf(memory_));
  ReceiveHandle later = posted_->Post(2, 7, BytesOf(memory_));
  ReceiveHandle last = posted_->Post(2, 8, BytesOf(memory_));
  posted_->DropPeer(1);
  handle.Revoke();
  posted_->Close();
  later.Revoke();
  posted_.reset();
  last.Revoke();
  EXPECT_TRUE(revoked_.empty());
}

// ---- over every transport ----

class VanPostedReceiveTest : public testing::TestWithParam<NetKind> {
 protected:
  void SetUp() override {
    peer_ = worker_->ConnectTo(server_.get(), server_->Listen());
    ASSERT_TRUE(world_->RunUntil([&] { return !server_->recorder->ups.empty(); }));
  }
  // Sends an answer of the server, with the token as its header.
  void Answer(std::uint64_t token, const std::string& frame) {
    Message message = TextMessage(std::to_string(token), {frame});
    message.receive_token = token;
    ASSERT_TRUE(server_->van->Send(server_->recorder->ups[0].peer, std::move(message)).ok());
  }
  void Ask() { ASSERT_TRUE(worker_->van->Send(peer_, TextMessage("ask")).ok()); }
  const Message& Received(std::size_t count) {
    EXPECT_TRUE(world_->RunUntil([&] { return worker_->recorder->messages.size() >= count; }));
    return worker_->recorder->messages.at(count - 1).message;
  }
  bool Asked(std::size_t count) {
    return world_->RunUntil([&] { return server_->recorder->messages.size() >= count; });
  }
  // True if this transport receives frames in place.
  bool InPlace() const {
    return GetParam() == NetKind::kTcp || GetParam() == NetKind::kRdma ||
           GetParam() == NetKind::kSim;
  }

  const std::unique_ptr<TestWorld> world_ = TestWorld::New(GetParam());
  std::unique_ptr<Node> server_ =
      std::make_unique<Node>(world_.get(), IdentityOf(Role::kServer, 2));
  std::unique_ptr<Node> worker_ =
      std::make_unique<Node>(world_.get(), IdentityOf(Role::kWorker, 3));
  PeerId peer_ = 0;
  std::string memory_ = std::string(kFrame, '.');
};

TEST_P(VanPostedReceiveTest, AnAnswerLiesWhereItWasPosted) {
  constexpr std::uint64_t kAnswers = runtime::kSanitized ? 40 : 200;
  for (std::uint64_t token = 1; token <= kAnswers; ++token) {
    const std::string frame = Frame(static_cast<char>(token));
    const ReceiveHandle handle = worker_->van->PostReceive(peer_, token, BytesOf(memory_));
    EXPECT_EQ(handle.empty(), !InPlace());
    Ask();
    ASSERT_TRUE(Asked(token));
    Answer(token, frame);
    const Message& message = Received(token);
    ASSERT_EQ(message.payload.size(), 1u);
    ASSERT_EQ(message.payload[0].text(), frame);
    if (!InPlace()) continue;
    EXPECT_EQ(static_cast<const void*>(message.payload[0].data()), memory_.data()) << token;
    EXPECT_FALSE(handle.awaits(peer_));
  }
  EXPECT_EQ(worker_->van->counters().in_place_bytes, InPlace() ? kAnswers * kFrame : 0);
}

TEST_P(VanPostedReceiveTest, ManyAtOnceEachLieInTheirOwnPlace) {
  // More than there are grants over rdma.
  constexpr std::uint64_t kMany = runtime::kSanitized ? 80 : 200;
  std::vector<std::string> memory(kMany, memory_);
  std::vector<ReceiveHandle> handles;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    handles.push_back(worker_->van->PostReceive(peer_, i + 1, BytesOf(memory[i])));
    Ask();
  }
  ASSERT_TRUE(Asked(kMany));
  for (std::uint64_t i = kMany; i > 0; --i) Answer(i, Frame(static_cast<char>(i)));
  for (std::uint64_t i = kMany; i > 0; --i) {
    const Message& message = Received(kMany - i + 1);
    ASSERT_EQ(message.header.text(), std::to_string(i));
    ASSERT_EQ(message.payload[0].text(), Frame(static_cast<char>(i)));
  }
  if (!InPlace()) return;
  EXPECT_GE(worker_->van->counters().in_place_bytes, 64 * kFrame);
}

TEST_P(VanPostedReceiveTest, PayloadsOfAnotherLengthOrTokenLieElsewhere) {
  const ReceiveHandle handle = worker_->van->PostReceive(peer_, 7, BytesOf(memory_));
  Ask();
  ASSERT_TRUE(Asked(1));
  Answer(8, Frame('a'));
  Answer(7, Frame('b').substr(1));
  Answer(7, Frame('c') + "x");
  EXPECT_EQ(Received(3).payload[0].text(), Frame('c') + "x");
  EXPECT_EQ(worker_->recorder->messages[0].message.payload[0].text(), Frame('a'));
  EXPECT_EQ(worker_->recorder->messages[1].message.payload[0].text(), Frame('b').substr(1));
  EXPECT_EQ(memory_, std::string(kFrame, '.'));
  EXPECT_EQ(worker_->van->counters().in_place_bytes, 0u);
}

TEST_P(VanPostedReceiveTest, ASecondAnswerLiesElsewhere) {
  const ReceiveHandle handle = worker_->van->PostReceive(peer_, 7, BytesOf(memory_));
  Ask();
  ASSERT_TRUE(Asked(1));
  Answer(7, Frame('a'));
  Received(1);
  memory_.assign(kFrame, '!');  // it belongs to its owner again
  Answer(7, Frame('b'));
  EXPECT_EQ(Received(2).payload[0].text(), Frame('b'));
  EXPECT_EQ(memory_, std::string(kFrame, '!'));
}

TEST_P(VanPostedReceiveTest, RevokedMemoryIsNotWrittenTo) {
  for (const bool told : {true, false}) {
    memory_.assign(kFrame, '.');
    ReceiveHandle handle = worker_->van->PostReceive(peer_, told ? 1 : 2, BytesOf(memory_));
    Ask();
    ASSERT_TRUE(Asked(told ? 1 : 2));
    handle.Revoke();
    if (told) world_->RunFor(absl::Milliseconds(50));
    Answer(told ? 1 : 2, Frame('a'));
    // If the other side had begun to write, the message may end the connection.
    ASSERT_TRUE(world_->RunUntil([&] {
      return worker_->recorder->messages.size() == (told ? 1 : 2) ||
             !worker_->recorder->downs.empty();
    }));
    if (told) {
      EXPECT_EQ(Received(1).payload[0].text(), Frame('a'));
    }
    EXPECT_EQ(memory_, std::string(kFrame, '.'));
  }
}

TEST_P(VanPostedReceiveTest, AnotherMayBePostedInItsPlace) {
  std::string other(kFrame, '.');
  ReceiveHandle first = worker_->van->PostReceive(peer_, 7, BytesOf(memory_));
  Ask();
  ASSERT_TRUE(Asked(1));
  const ReceiveHandle second = worker_->van->PostReceive(peer_, 7, BytesOf(other));
  Ask();
  ASSERT_TRUE(Asked(2));
  Answer(7, Frame('a'));
  EXPECT_EQ(Received(1).payload[0].text(), Frame('a'));
  EXPECT_EQ(memory_, std::string(kFrame, '.'));
  if (InPlace()) {
    EXPECT_EQ(other, Frame('a'));
  }
}

TEST_P(VanPostedReceiveTest, HandlesOutliveThePeerAndTheVan) {
  ReceiveHandle of_peer = worker_->van->PostReceive(peer_, 7, BytesOf(memory_));
  ReceiveHandle of_van = worker_->van->PostReceive(peer_, 8, BytesOf(memory_));
  worker_->van->Disconnect(peer_, absl::OkStatus());
  of_peer.Revoke();
  worker_.reset();
  of_van.Revoke();
  EXPECT_EQ(memory_, std::string(kFrame, '.'));
}

TEST_P(VanPostedReceiveTest, NothingIsPostedForNobodyOrForNothing) {
  EXPECT_TRUE(worker_->van->PostReceive(peer_ + 99, 7, BytesOf(memory_)).empty());
  EXPECT_TRUE(worker_->van->PostReceive(peer_, 0, BytesOf(memory_)).empty());
  EXPECT_TRUE(worker_->van->PostReceive(peer_, 7, {}).empty());
}

INSTANTIATE_TEST_SUITE_P(Nets, VanPostedReceiveTest, testing::ValuesIn(kAllNets),
                         [](const auto& kind) { return NameOf(kind.param); });

}  // namespace
}  // namespace leeway::van
