#include "van/shm/shm_sender.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "van/shm/shm_receiver.h"

namespace leeway::van {
namespace {

constexpr ShmSizes kSizes{.ring_bytes = kShmRingBytesMin, .arena_units = 16};

// Both sides of a connection, in one process.
class ShmSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
    const auto ours = ShmOwnSegment::New(kSizes).value();
    const auto theirs = ShmOwnSegment::New(kSizes).value();
    link_ = Link(ours, theirs, sockets[0]);
    sender_.emplace(link_, &done_);
    receiver_.emplace(
        Link(theirs, ours, sockets[1]),
        ShmReceiver::Limits{
            .first_bytes_max = 4096, .frame_bytes_max = 1 << 20, .payload_frames_max = 3});
  }

  void Send(std::size_t units) {
    Message message;
    std::byte* data = nullptr;
    message.payload.push_back(Buffer::Allocate(units * kShmUnitBytes, &data));
    std::memset(data, 1, units * kShmUnitBytes);
    sender_->Send(Prefix{}, std::move(message), nullptr);
  }
  // Reads all records and releases their frames.
  int Read() {
    int messages = 0;
    while (*receiver_->Next() != ShmReceiver::Got::kNothing) {
      receiver_->TakeArrival();
      ++messages;
    }
    return messages;
  }

  std::shared_ptr<ShmLink> link_;
  DoneList done_;
  std::optional<ShmSender> sender_;
  std::optional<ShmReceiver> receiver_;

 private:
  static std::shared_ptr<ShmLink> Link(const std::shared_ptr<ShmOwnSegment>& own,
                                       const std::shared_ptr<ShmOwnSegment>& other, int socket) {
    return std::make_shared<ShmLink>(
        own, ShmPeerSegment::Map(UniqueFd(::dup(other->fd())), kSizes).value(),
        std::make_shared<ShmSocket>(UniqueFd(socket)));
  }
};

// Otherwise a loop would take every release for room that it waits for, and never sleep again.
TEST_F(ShmSenderTest, WaitsForRoomNoLongerThanItNeedsSome) {
  for (int i = 0; i < 5; ++i) Send(/*units=*/4);
  EXPECT_FALSE(sender_->idle());
  EXPECT_FALSE(link_->Ready());
  EXPECT_EQ(Read(), 4);
  EXPECT_TRUE(link_->Ready());
  EXPECT_TRUE(sender_->Flush());
  EXPECT_TRUE(sender_->idle());
  EXPECT_EQ(Read(), 1);
  EXPECT_FALSE(link_->Ready());
}

}  // namespace
}  // namespace leeway::van
