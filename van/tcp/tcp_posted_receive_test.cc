// Tests of large frames that a receiver reads directly into posted memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "van/posted_receive.h"
#include "van/tcp/tcp_format.h"
#include "van/tcp/tcp_receiver.h"
#include "van/testing/tcp_feed_receiver.h"

namespace leeway::van::tcp_posted_receive_test {
namespace {

constexpr std::size_t kFrame = 200'000;

std::string Bytes(std::uint64_t number, std::size_t size) {
  std::string bytes(size, '\0');
  if (size == 4) Put(static_cast<std::uint32_t>(number), reinterpret_cast<std::byte*>(&bytes[0]));
  if (size == 8) Put(number, reinterpret_cast<std::byte*>(&bytes[0]));
  return bytes;
}

std::string MessageOf(const std::string& head, const std::vector<std::string>& payload) {
  const std::string none = Bytes(kNoChecksum, 4);
  std::string bytes = Bytes(head.size(), 4) + Bytes(payload.size(), 4) + none + head + none;
  for (const std::string& frame : payload) bytes += Bytes(frame.size(), 8) + none + frame + none;
  return bytes;
}

std::string Frame(char seed) {
  std::string bytes(kFrame, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(seed + i * 31);
  return bytes;
}

class TcpPostedReceiveTest : public ::testing::Test {
 protected:
  void Feed(const std::string& bytes, std::size_t cut) {
    FeedReceiver(&receiver_, bytes, cut, [this](const Arrival& arrival) {
      frames_.assign(arrival.payload.begin(), arrival.payload.end());
      ++messages_;
    });
  }
  std::byte* memory() { return reinterpret_cast<std::byte*>(memory_.data()); }

  std::string memory_ = std::string(kFrame, '.');
  std::shared_ptr<const PostedReceive> Find(std::uint64_t bytes) {
    if (handle_.empty()) handle_ = Post();
    return posted_->Find(1, 7, bytes);
  }
  ReceiveHandle Post() { return posted_->Post(1, 7, {memory(), kFrame}); }

  const std::shared_ptr<PostedReceives> posted_ = PostedReceives::New(nullptr);
  ReceiveHandle handle_;
  std::vector<std::pair<std::string, std::uint64_t>> asked_;
  TcpScratch scratch_;
  TcpReceiver receiver_{
      {.first_bytes_max = 1 << 20, .frame_bytes_max = 1 << 20, .payload_frames_max = 8},
      &scratch_,
      [this](std::span<const std::byte> head, std::uint64_t bytes) {
        asked_.emplace_back(std::string(reinterpret_cast<const char*>(head.data()), head.size()),
                            bytes);
        return Find(bytes);
      }};
  std::vector<Buffer> frames_;  // payload of the last message
  int messages_ = 0;
};

TEST_F(TcpPostedReceiveTest, AFrameIsReadInPlaceWhereverItIsCut) {
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

TEST_F(TcpPostedReceiveTest, NobodyIsAskedForSmallFramesNorForOneOfSeveral) {
  Feed(MessageOf("small", {std::string(60'000, 's')}), 1000);
  Feed(MessageOf("first", {Frame('a'), "x"}), 10'000);
  Feed(MessageOf("second", {"x", Frame('b')}), 10'000);
  EXPECT_THAT(asked_, testing::IsEmpty());
  EXPECT_EQ(frames_[1].text(), Frame('b'));
}

// Like a sparse push (keys, then values): the values must not be read elsewhere and copied.
TEST_F(TcpPostedReceiveTest, LittleIsReadBehindAFrameThatAnotherFollows) {
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

// The rest of the frame goes elsewhere, and the message has its full length.
TEST_F(TcpPostedReceiveTest, RevokedMemoryIsNotWrittenTo) {
  const std::string bytes = MessageOf("head", {Frame('c')});
  Feed(bytes.substr(0, bytes.size() / 2), 30'000);
  ASSERT_NE(memory_, std::string(kFrame, '.'));
  handle_.Revoke();
  memory_.assign(kFrame, '!');
  Feed(bytes.substr(bytes.size() / 2), 30'000);
  EXPECT_EQ(memory_, std::string(kFrame, '!'));
  ASSERT_EQ(frames_.size(), 1u);
  EXPECT_EQ(frames_[0].size(), kFrame);
  EXPECT_NE(frames_[0].data(), memory());
  EXPECT_EQ(frames_[0].text().substr(kFrame / 2 + 100), Frame('c').substr(kFrame / 2 + 100));
}

// All of the frame has come, but not its checksum.
TEST_F(TcpPostedReceiveTest, NorIsItHandedOverWhenTheLastBytesComeLate) {
  const std::string bytes = MessageOf("head", {Frame('e')});
  Feed(bytes.substr(0, bytes.size() - 2), 30'000);
  ASSERT_EQ(memory_, Frame('e'));
  ASSERT_EQ(messages_, 0);
  handle_.Revoke();
  Feed(bytes.substr(bytes.size() - 2), 30'000);
  ASSERT_EQ(frames_.size(), 1u);
  EXPECT_EQ(frames_[0].size(), kFrame);
  EXPECT_NE(frames_[0].data(), memory());
}

TEST_F(TcpPostedReceiveTest, NorIsThatOfAHandleThatHasGone) {
  const std::string bytes = MessageOf("head", {Frame('d')});
  std::optional<ReceiveHandle> handle(Post());
  TcpReceiver receiver(
      {.first_bytes_max = 99, .frame_bytes_max = kFrame, .payload_frames_max = 1}, &scratch_,
      [&](std::span<const std::byte>, std::uint64_t) { return posted_->Find(1, 7, kFrame); });
  const auto feed = [&](const std::string& part) {
    FeedReceiver(&receiver, part, 30'000, [](const Arrival&) {});
  };
  feed(bytes.substr(0, bytes.size() / 2));
  handle.reset();
  memory_.assign(kFrame, '!');
  feed(bytes.substr(bytes.size() / 2));
  EXPECT_EQ(memory_, std::string(kFrame, '!'));
  EXPECT_TRUE(receiver.idle());
}

}  // namespace
}  // namespace leeway::van::tcp_posted_receive_test
