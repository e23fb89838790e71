#include "ps/data/state/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/messages/limits.h"
#include "runtime/sim/sim_world.h"

namespace leeway::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr van::PeerId kOne = 1;
constexpr van::PeerId kOther = 2;
constexpr van::PeerId kTwo = 2;
constexpr std::size_t kBlock = 1 << 20;

// A transport that is done with what it was given when the test says so.
class RepliesTest : public ::testing::Test {
 protected:
  struct Sent {
    van::PeerId peer = 0;
    std::uint64_t sequence = 0;
    van::SendDone done;
  };

  void Add(van::PeerId peer, std::uint64_t sequence, int priority, std::size_t bytes = kBlock,
           bool reader = false) {
    proto::Reply reply;
    reply.id = {.sequence = sequence, .worker = 0, .shard = 3};
    reply.priority = priority;
    Payload payload;
    if (bytes > 0) payload.push_back(runtime::Buffer::CopyOf(std::string(bytes, 'x')));
    replies_.Add(peer, reply, std::move(payload), reader);
  }
  // What was sent since the last time.
  std::vector<std::uint64_t> Sequences() {
    std::vector<std::uint64_t> sequences;
    for (; told_ < sent_.size(); ++told_) sequences.push_back(sent_[told_].sequence);
    return sequences;
  }
  void Done(std::size_t index) {
    world_.RunFor(absl::Milliseconds(8));  // 1 Gbit/s
    van::SendDone done = std::move(sent_[index].done);
    ASSERT_TRUE(done != nullptr);
    std::move(done)(absl::OkStatus());
  }

  runtime::SimWorld world_{1};
  std::unique_ptr<runtime::Host> host_ = world_.NewHost("server");
  std::unique_ptr<runtime::LoopRunner> runner_ = host_->Spawn("data");
  std::vector<Sent> sent_;
  std::size_t told_ = 0;
  int messages_ = 0;
  absl::Status result_;
  bool writable_ = true;
  std::vector<std::uint64_t> failed_;
  Replies replies_{
      runner_->loop(),
      [this](van::PeerId peer, const proto::AnyMessage& message, const Payload&,
             van::SendDone done) {
        if (!result_.ok()) return result_;
        ++messages_;
        if (const auto* acks = std::get_if<proto::PushAcks>(&message)) {
          for (const proto::PushAck& ack : acks->acks) sent_.push_back({peer, ack.sequence, {}});
        } else {
          sent_.push_back({peer, std::get<proto::Reply>(message).id.sequence, std::move(done)});
        }
        return absl::OkStatus();
      },
      [this](van::PeerId) { return writable_; },
      [this](van::PeerId, const proto::Reply& reply, const absl::Status&) {
        failed_.push_back(reply.id.sequence);
      }};
};

TEST_F(RepliesTest, HigherPriorityLeavesFirst) {
  Add(kOne, 1, 0);
  Add(kOne, 2, 0);
  Add(kOne, 3, 0);
  Add(kOne, 4, 5);
  Add(kOne, 5, -5);
  EXPECT_THAT(Sequences(), ElementsAre(1));
  for (std::size_t i = 0; i < 5; ++i) Done(i);
  EXPECT_THAT(Sequences(), ElementsAre(4, 2, 3, 5));
}

TEST_F(RepliesTest, WorkersDoNotWaitForEachOther) {
  Add(kOne, 1, 0);
  Add(kOther, 2, -5);
  EXPECT_THAT(Sequences(), ElementsAre(1, 2));
}

TEST_F(RepliesTest, RepliesWithoutValuesLeaveAtOnce) {
  Add(kOne, 1, 0);
  Add(kOne, 2, 0);
  Add(kOne, 3, -5, 0);
  EXPECT_THAT(Sequences(), ElementsAre(1, 3));
}

TEST_F(RepliesTest, SmallRepliesAreCountedTogether) {
  for (std::uint64_t i = 1; i <= 1000; ++i) Add(kOne, i, 0, 8 << 10);
  const std::vector<std::uint64_t> sent = Sequences();
  EXPECT_LE(sent.size() * (8 << 10), van::SendPacer::kBytesMin + (128 << 10));
  Add(kOne, 2000, 1, 8 << 10);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent_[i].done != nullptr) Done(i);
  }
  EXPECT_EQ(Sequences().at(0), 2000u);
}

TEST_F(RepliesTest, AReplyThatIsAskedForAgainIsSentOnce) {
  Add(kOne, 1, 0);
  Add(kOne, 2, 0);
  Add(kOne, 2, 0);
  Done(0);
  Done(1);
  EXPECT_THAT(Sequences(), ElementsAre(1, 2));
  Add(kOne, 2, 0);  // it may have been lost
  EXPECT_THAT(Sequences(), ElementsAre(2));
}

// The pulls of the second round are sent again, because their answers were lost.
TEST_F(RepliesTest, AReplyThatHasBeenSentMayWaitAgain) {
  for (int round = 1; round <= 2; ++round) {
    for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) Add(kOne, sequence, 0);
    for (std::size_t i = told_; i < sent_.size(); ++i) Done(i);
    EXPECT_EQ(Sequences().size(), 20u) << "round " << round;
  }
}

TEST_F(RepliesTest, ALostPeerIsForgotten) {
  Add(kOne, 1, 0);
  Add(kOne, 2, 0);
  replies_.DropPeer(kOne);
  Done(0);
  EXPECT_THAT(Sequences(), ElementsAre(1));
}

TEST_F(RepliesTest, AReplyThatCannotBeSentIsReportedAndTheRestLeaves) {
  Add(kOne, 1, 0);
  Add(kOne, 2, 0);
  result_ = absl::InvalidArgumentError("too large");
  Done(0);
  EXPECT_THAT(failed_, ElementsAre(2));
  result_ = absl::OkStatus();
  Add(kOne, 3, 0);
  EXPECT_THAT(Sequences(), ElementsAre(1, 3));
}

TEST_F(RepliesTest, AcknowledgementsThatAreGatheredLeaveTogether) {
  {
    const Replies::Gathering gathering(&replies_);
    for (std::uint64_t i = 1; i <= 5; ++i) Add(kOne, i, 0, 0);
    Add(kOther, 6, 0, 0);
    EXPECT_THAT(Sequences(), IsEmpty());
  }
  EXPECT_THAT(Sequences(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(messages_, 2);
  Add(kOne, 7, 0, 0);
  EXPECT_THAT(Sequences(), ElementsAre(7)) << "nothing is kept back once the gathering has ended";
}

TEST_F(RepliesTest, ErrorsAndValuesAreNotGathered) {
  const Replies::Gathering gathering(&replies_);
  proto::Reply refused;
  refused.id.sequence = 1;
  refused.result = absl::InvalidArgumentError("no");
  replies_.Add(kOne, refused, {});
  proto::Reply pulled;
  pulled.id.sequence = 2;
  pulled.op = proto::Op::kPull;
  replies_.Add(kOne, pulled, {});
  Add(kOne, 3, 0, kBlock);
  EXPECT_THAT(Sequences(), ElementsAre(1, 2, 3));
}

TEST_F(RepliesTest, GatheredAcknowledgementsGoBeforeOtherMessages) {
  const Replies::Gathering gathering(&replies_);
  Add(kOne, 1, 0, 0);
  Add(kOne, 2, 0, 0);
  Add(kOther, 3, 0, 0);
  replies_.SendGathered(kOne);
  EXPECT_THAT(Sequences(), ElementsAre(1, 2));
}

TEST_F(RepliesTest, NoMessageHasMoreAcknowledgementsThanItMay) {
  {
    const Replies::Gathering gathering(&replies_);
    for (std::uint64_t i = 1; i <= proto::kPushesPerBatchMax + 2; ++i) Add(kOne, i, 0, 0);
  }
  EXPECT_EQ(messages_, 2);
  EXPECT_EQ(Sequences().size(), proto::kPushesPerBatchMax + 2);
}

TEST_F(RepliesTest, GatheredAcknowledgementsOfALostPeerAreDropped) {
  {
    const Replies::Gathering gathering(&replies_);
    Add(kOne, 1, 0, 0);
    replies_.DropPeer(kOne);
  }
  EXPECT_THAT(Sequences(), IsEmpty());
}

TEST_F(RepliesTest, EachAcknowledgementThatCannotBeSentIsSaid) {
  {
    const Replies::Gathering gathering(&replies_);
    Add(kOne, 1, 0, 0);
    Add(kOne, 2, 0, 0);
    result_ = absl::ResourceExhaustedError("its queue is full");
  }
  EXPECT_THAT(failed_, ElementsAre(1, 2));
}

// Bytes that are charged while replies to one worker or two wait.
TEST_F(RepliesTest, RepliesThatWaitForWorkersAreChargedToTheProcess) {
  const auto queue = std::make_shared<runtime::SharedByteBudget>(16 * kBlock);
  replies_.SetSendQueue(queue);
  std::uint64_t sequence = 0;
  const auto fill = [&](van::PeerId worker) {
    const std::size_t before = failed_.size();
    int added = 0;
    for (; failed_.size() == before && added < 100; ++added) Add(worker, ++sequence, 0);
    return added;
  };
  writable_ = false;
  EXPECT_NEAR(fill(kOne), 8, 2);
  EXPECT_NEAR(fill(kTwo), 4, 2);  // a worker that takes nothing leaves room for others
  EXPECT_GT(queue->bytes(), 10 * kBlock);
  replies_.DropPeer(kOne);
  EXPECT_LT(queue->bytes(), 6 * kBlock);
  writable_ = true;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    if (sent_[i].done != nullptr) Done(i);
  }
  replies_.Clear();
  EXPECT_EQ(queue->bytes(), 0u);
}

TEST_F(RepliesTest, ASentReplyIsChargedNoMore) {
  const auto queue = std::make_shared<runtime::SharedByteBudget>(64 * kBlock);
  replies_.SetSendQueue(queue);
  for (std::uint64_t sequence = 1; sequence <= 6; ++sequence) Add(kOne, sequence, 0);
  EXPECT_GT(queue->bytes(), kBlock);
  for (std::size_t i = 0; i < 6; ++i) Done(i);
  EXPECT_EQ(sent_.size(), 6u);
  EXPECT_EQ(queue->bytes(), 0u);
}

// One that never takes anything in: 32 MiB of it are kept, and 64 MiB of all readers together.
TEST_F(RepliesTest, ReadersHaveLittleRoom) {
  std::uint64_t sequence = 0;
  const auto fill = [&](van::PeerId reader) {
    const std::size_t before = failed_.size();
    std::uint64_t kept = 0;
    while (failed_.size() == before && kept < 1000) {
      Add(reader, ++sequence, 0, kBlock, /*reader=*/true);
      kept += failed_.size() == before ? 1 : 0;
    }
    return kept;
  };
  for (van::PeerId reader = 10; reader < 12; ++reader) EXPECT_NEAR(fill(reader), 32, 4);
  EXPECT_LE(fill(14), 8u);
  replies_.DropPeer(10);
  EXPECT_GE(fill(14), 20u);  // what it had is free again
  const std::size_t failed = failed_.size();
  for (int i = 0; i < 100; ++i) Add(kOne, ++sequence, 0);
  EXPECT_EQ(failed_.size(), failed);  // workers have theirs
}

// What the transport has taken and not got rid of counts; one long answer may go by itself.
TEST_F(RepliesTest, ALongAnswerToAReaderTakesTheRoomOfAll) {
  ASSERT_TRUE(replies_.CheckReader(10).ok());
  Add(10, 1, 0, 300 << 20, /*reader=*/true);
  EXPECT_THAT(Sequences(), ElementsAre(1));
  EXPECT_EQ(replies_.CheckReader(11).code(), absl::StatusCode::kUnavailable);
  Add(11, 2, 0, kBlock, /*reader=*/true);
  EXPECT_THAT(failed_, ElementsAre(2));
  Done(0);
  EXPECT_TRUE(replies_.CheckReader(11).ok());
  Add(11, 3, 0, kBlock, /*reader=*/true);
  EXPECT_THAT(Sequences(), ElementsAre(3));
}

TEST_F(RepliesTest, AReaderThatAsksAndDoesNotReadIsFoundOut) {
  writable_ = false;
  absl::Status checked;
  for (int i = 0; i < 4096 && checked.ok(); ++i) checked = replies_.CheckReader(10);
  EXPECT_TRUE(checked.ok()) << checked;
  EXPECT_EQ(replies_.CheckReader(10).code(), absl::StatusCode::kPermissionDenied);
  writable_ = true;
  EXPECT_TRUE(replies_.CheckReader(10).ok());
}

TEST_F(RepliesTest, OneReplyBeyondTheTransportsRoomReportsWhenMoreMayGo) {
  writable_ = false;
  Add(kOne, 1, 0, 16);
  Add(kOne, 2, 0, 16);
  Add(kOne, 3, 1, 16);
  EXPECT_THAT(Sequences(), ElementsAre(1));
  writable_ = true;
  Done(0);
  EXPECT_THAT(Sequences(), ElementsAre(3, 2));
  EXPECT_THAT(failed_, IsEmpty());
}

}  // namespace
}  // namespace leeway::ps
