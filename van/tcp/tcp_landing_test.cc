// Large frames that are received straight into memory of the handler's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "van/tcp/feed_receiver.h"
#include "van/tcp/tcp_format.h"
#include "van/tcp/tcp_receiver.h"
#include "van/test_world.h"

namespace leeway::van {
namespace {

constexpr std::size_t kFrame = 200'000;

std::string Bytes(std::uint64_t number, std::size_t size) {
  std::string bytes(size, '\0');
  if (size == 4) Put(static_cast<std::uint32_t>(number), reinterpret_cast<std::byte*>(&bytes[0]));
  if (size == 8) Put(number, reinterpret_cast<std::byte*>(&bytes[0]));
  return bytes;
}

std::string MessageOf(const std::string& head, const std::vector<std::string>& payload) {
  std::string bytes = Bytes(head.size(), 4) + Bytes(payload.size(), 4) + head;
  for (const std::string& frame : payload) bytes += Bytes(frame.size(), 8) + frame;
  return bytes;
}

std::string Frame(char seed) {
  std::string bytes(kFrame, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(seed + i * 31);
  return bytes;
}

class TcpLandingTest : public ::testing::Test {
 protected:
  void Feed(const std::string& bytes, std::size_t cut) {
    FeedReceiver(&receiver_, bytes, cut, [this](const Arrival& arrival) {
      frames_.assign(arrival.payload.begin(), arrival.payload.end());
      ++messages_;
    });
  }
  std::byte* memory() { return reinterpret_cast<std::byte*>(memory_.data()); }

  std::string memory_ = std::string(kFrame, '.');
  LandingGrant grant_;
  std::vector<std::pair<std::string, std::uint64_t>> asked_;
  TcpScratch scratch_;
  TcpReceiver receiver_{
      {.first_bytes_max = 1 << 20, .frame_bytes_max = 1 << 20, .payload_frames_max = 8},
      &scratch_,
      [this](std::span<const std::byte> head, std::uint64_t bytes) {
        asked_.emplace_back(std::string(reinterpret_cast<const char*>(head.data()), head.size()),
                            bytes);
        return grant_.Give(memory());
      }};
  std::vector<Buffer> frames_;  // of the last message
  int messages_ = 0;
};

TEST_F(TcpLandingTest, AFrameLandsWhereverItIsCut) {
  for (const std::size_t piece : {7000u, 65536u, 65537u, 150'000u, 1'000'000u}) {
    asked_.clear();
    const std::string frame = Frame(static_cast<char>(piece));
    Feed(MessageOf("head", {frame}) + MessageOf("next", {"x"}), piece);
    EXPECT_EQ(asked_, (std::vector<std::pair<std::string, std::uint64_t>>{{"head", kFrame}}));
    EXPECT_EQ(memory_, frame) << piece;
    ASSERT_EQ(frames_.size(), 1u);
    EXPECT_EQ(frames_[0].text(), "x");
    Feed(MessageOf("head", {frame}), piece);
    ASSERT_EQ(frames_.size(), 1u);
    EXPECT_EQ(frames_[0].data(), memory());
    EXPECT_EQ(frames_[0].size(), kFrame);
  }
  EXPECT_EQ(messages_, 15);
}

TEST_F(TcpLandingTest, NobodyIsAskedForSmallFramesNorForOneOfSeveral) {
  Feed(MessageOf("small", {std::string(60'000, 's')}), 1000);
  Feed(MessageOf("first", {Frame('a'), "x"}), 10'000);
  Feed(MessageOf("second", {"x", Frame('b')}), 10'000);
  EXPECT_THAT(asked_, testing::IsEmpty());
  EXPECT_EQ(frames_[1].text(), Frame('b'));
}

// As a sparse push has them: the values are not to be read elsewhere and copied.
TEST_F(TcpLandingTest, LittleIsReadBehindAFrameThatAnotherFollows) {
  const std::string keys(30'000, 'k');
  for (const bool another : {false, true}) {
    const std::string values = another ? Frame('v') : "";
    std::string bytes = MessageOf("head", {keys});
    if (another) bytes = MessageOf("head", {keys, values});
    Feed(bytes.substr(0, 5000), 5000);
    std::array<iovec, 2> places;
    ASSERT_EQ(receiver_.Places(&places), 2);
    EXPECT_EQ(places[1].iov_len, another ? 4096u : TcpScratch::kBytes);
    Feed(bytes.substr(5000), 1'000'000);
    ASSERT_EQ(frames_.size(), another ? 2u : 1u);
    EXPECT_EQ(frames_[0].text(), keys);
    EXPECT_EQ(frames_.back().text(), another ? values : keys);
  }
  EXPECT_EQ(messages_, 2);
}

// What is still to come goes elsewhere, and the message is as long as it says.
TEST_F(TcpLandingTest, ARevokedGrantIsNotWrittenTo) {
  const std::string bytes = MessageOf("head", {Frame('c')});
  Feed(bytes.substr(0, bytes.size() / 2), 30'000);
  ASSERT_NE(memory_, std::string(kFrame, '.'));
  grant_.Revoke();
  memory_.assign(kFrame, '!');
  Feed(bytes.substr(bytes.size() / 2), 30'000);
  EXPECT_EQ(memory_, std::string(kFrame, '!'));
  ASSERT_EQ(frames_.size(), 1u);
  EXPECT_EQ(frames_[0].size(), kFrame);
  EXPECT_NE(frames_[0].data(), memory());
  EXPECT_EQ(frames_[0].text().substr(kFrame / 2 + 100), Frame('c').substr(kFrame / 2 + 100));
}

TEST_F(TcpLandingTest, NorIsOneWhoseGranterHasGone) {
  const std::string bytes = MessageOf("head", {Frame('d')});
  std::optional<LandingGrant> grant(std::in_place);
  TcpReceiver receiver(
      {.first_bytes_max = 99, .frame_bytes_max = kFrame, .payload_frames_max = 1}, &scratch_,
      [&](std::span<const std::byte>, std::uint64_t) { return grant->Give(memory()); });
  const auto feed = [&](const std::string& part) {
    FeedReceiver(&receiver, part, 30'000, [](const Arrival&) {});
  };
  feed(bytes.substr(0, bytes.size() / 2));
  grant.reset();
  memory_.assign(kFrame, '!');
  feed(bytes.substr(bytes.size() / 2));
  EXPECT_EQ(memory_, std::string(kFrame, '!'));
  EXPECT_TRUE(receiver.idle());
}

// A message over a real connection, through the whole van.
TEST(TcpLanding, TheHandlerIsAskedForMessagesOfPeersThatAreUp) {
  class Granter final : public Recorder {
   public:
    std::shared_ptr<const Landing> LandingFor(PeerId peer, std::span<const std::byte> header,
                                              std::uint64_t bytes) override {
      EXPECT_TRUE(IsUp(peer));
      EXPECT_EQ(bytes, kFrame);
      header_.assign(reinterpret_cast<const char*>(header.data()), header.size());
      return grant_.Give(reinterpret_cast<std::byte*>(memory_.data()));
    }
    std::string header_, memory_ = std::string(kFrame, '.');
    LandingGrant grant_;
  };
  const std::unique_ptr<TestWorld> world = TestWorld::New(NetKind::kTcp);
  auto granter = std::make_unique<Granter>();
  Granter* const at = granter.get();
  Node sender(world.get(), IdentityOf(Role::kServer, 1));
  const int process = world->NewProcess();
  auto van = world->factory(process)->New(world->loop(process), IdentityOf(Role::kWorker, 2),
                                          Limits(), at);
  Node receiver(world.get(), process, std::move(van), std::move(granter));
  const PeerId peer = sender.ConnectTo(&receiver, receiver.Listen());
  ASSERT_TRUE(sender.van->Send(peer, TextMessage("which", {Frame('e')})).ok());
  ASSERT_TRUE(world->RunUntil([&] { return at->messages.size() == 1; }));
  EXPECT_EQ(at->header_, "which");
  EXPECT_EQ(at->memory_, Frame('e'));
  EXPECT_EQ(static_cast<const void*>(at->messages[0].message.payload[0].data()),
            at->memory_.data());
}

}  // namespace
}  // namespace leeway::van
