#include "van/shm/shm_sender.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
    other_link_ = Link(theirs, ours, sockets[1]);
    sender_.emplace(link_, &done_);
    receiver_.emplace(other_link_, ShmReceiver::Limits{.first_bytes_max = 4096,
                                                       .frame_bytes_max = 1 << 20,
                                                       .payload_frames_max = 3});
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

  // A message that lies in the ring.
  void SendSmall() {
    Message message;
    message.payload.push_back(Buffer::CopyOf(std::string(kShmInlineBytesMax, 'x')));
    sender_->Send(Prefix{}, std::move(message), nullptr);
  }
  bool TakeWakeUp() {
    std::vector<UniqueFd> descriptors;
    return link_->socket->Drain(&descriptors) == ShmSocket::Drained::kSome;
  }

  std::shared_ptr<ShmLink> link_, other_link_;
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

// The other side makes room in two steps: it says how far it has read, and then wakes whoever waits
// for that. In whatever order these come between the sender's steps, the sender sees the room
// before it sleeps, or is woken.
TEST_F(ShmSenderTest, MissesNoRoomInAnyOrderOfSteps) {
  constexpr int kMoments = 4;  // too little room; asked; again too little; Flush has returned
  for (int read = 0; read < kMoments; ++read) {
    for (int wake = read; wake < kMoments; ++wake) {
      SCOPED_TRACE(testing::Message() << "read at moment " << read << ", wake-up at " << wake);
      int moment = 0;
      const auto other_side = [&] {
        if (moment == read) {
          other_link_->own->control().head.store(link_->own->control().tail.load());
        }
        if (moment == wake) other_link_->WakeForRoom();
        ++moment;
      };
      sender_->CallAfterSteps(other_side);
      while (moment == 0) SendSmall();
      sender_->CallAfterSteps(nullptr);
      bool awake = sender_->idle() || link_->Ready();
      while (moment < kMoments) other_side();
      awake = TakeWakeUp() || awake;
      EXPECT_TRUE(awake);
      sender_->Flush();
      ASSERT_TRUE(sender_->idle());
    }
  }
}

// A sender that was woken, and found too little room for all that waits, is woken again.
TEST_F(ShmSenderTest, IsWokenEachTimeThatItWaits) {
  for (int i = 0; i < 8; ++i) Send(/*units=*/4);
  for (int waits = 0; waits < 4; ++waits) {
    ASSERT_FALSE(sender_->idle());
    ASSERT_NE(*receiver_->Next(), ShmReceiver::Got::kNothing);
    receiver_->TakeArrival();
    EXPECT_TRUE(TakeWakeUp()) << waits;
    sender_->Flush();
  }
  EXPECT_TRUE(sender_->idle());
}

}  // namespace
}  // namespace leeway::van
