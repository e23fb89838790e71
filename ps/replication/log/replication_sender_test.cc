#include "ps/replication/log/replication_sender.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leeway::ps {
namespace {

constexpr std::uint64_t kStream = 7;

absl::Time At(int milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

LogEntry EntryOf(std::size_t payload_bytes) {
  LogEntry entry;
  entry.payload = {runtime::Buffer::CopyOf(std::string(payload_bytes, 'x'))};
  return entry;
}

ReplicationSender WithEntries(int count, const ReplicationSender::Limits& limits = {}) {
  ReplicationSender sender(kStream, limits);
  for (int i = 0; i < count; ++i) sender.Append(EntryOf(100));
  return sender;
}

// Sends what may be sent; the numbers that left.
std::vector<std::uint64_t> SendAll(ReplicationSender& sender, absl::Time now = At(0)) {
  std::vector<std::uint64_t> sent;
  while (LogEntry* next = sender.Next()) {
    EXPECT_EQ(next->header.stream, kStream);
    sent.push_back(next->header.entry);
    sender.NoteSent(now);
  }
  return sent;
}

using Numbers = std::vector<std::uint64_t>;

TEST(ReplicationSender, NumbersEntriesAndSendsEachOnce) {
  ReplicationSender sender = WithEntries(3);
  EXPECT_EQ(SendAll(sender), Numbers({1, 2, 3}));
  EXPECT_TRUE(sender.all_sent());
  EXPECT_EQ(sender.Append(EntryOf(1)), 4u);
  EXPECT_EQ(SendAll(sender), Numbers({4}));
  EXPECT_EQ(sender.TakeAck(2, 0, At(0)), ReplicationSender::Outcome::kProgress);
  EXPECT_FALSE(sender.all_acked());
  EXPECT_EQ(sender.TakeAck(4, 0, At(0)), ReplicationSender::Outcome::kProgress);
  EXPECT_TRUE(sender.all_acked());
  EXPECT_EQ(sender.in_flight_bytes(), 0u);
  EXPECT_EQ(sender.Append(EntryOf(1)), 5u);
}

TEST(ReplicationSender, SendsNoMoreThanTheWindow) {
  const std::uint64_t one = EntryOf(100).bytes();
  ReplicationSender sender = WithEntries(5, {.window_bytes = 2 * one});
  EXPECT_EQ(SendAll(sender), Numbers({1, 2}));
  sender.TakeAck(1, 0, At(0));
  EXPECT_EQ(SendAll(sender), Numbers({3}));
  EXPECT_EQ(sender.in_flight_bytes(), 2 * one);
}

TEST(ReplicationSender, AnEntryLargerThanTheWindowGoesAlone) {
  ReplicationSender sender = WithEntries(1, {.window_bytes = 1000});
  sender.Append(EntryOf(5000));
  sender.Append(EntryOf(100));
  EXPECT_EQ(SendAll(sender), Numbers({1}));
  sender.TakeAck(1, 0, At(0));
  EXPECT_EQ(SendAll(sender), Numbers({2}));
  sender.TakeAck(2, 0, At(0));
  EXPECT_EQ(SendAll(sender), Numbers({3}));
}

TEST(ReplicationSender, ResendsWithoutAcknowledgementsAtDoublingIntervals) {
  ReplicationSender sender = WithEntries(
      2, {.resend_first = absl::Milliseconds(10), .resend_max = absl::Milliseconds(40)});
  EXPECT_EQ(sender.due(), absl::InfiniteFuture());
  SendAll(sender, At(0));
  for (const int due : {10, 30, 70, 110}) {
    EXPECT_EQ(sender.due(), At(due));
    EXPECT_FALSE(sender.RewindIfDue(At(due - 1)));
    EXPECT_TRUE(sender.RewindIfDue(At(due)));
    EXPECT_EQ(SendAll(sender, At(due)), Numbers({1, 2}));
  }
  sender.TakeAck(1, 0, At(120));
  EXPECT_EQ(sender.due(), At(130));  // progress: patient no longer
  sender.TakeAck(2, 0, At(120));
  EXPECT_EQ(sender.due(), absl::InfiniteFuture());
}

TEST(ReplicationSender, AGapIsFilledAtOnceButOnlyOnce) {
  ReplicationSender sender = WithEntries(4);
  SendAll(sender);
  sender.TakeAck(1, 0, At(0));
  EXPECT_EQ(sender.TakeAck(1, 0, At(0)), ReplicationSender::Outcome::kNothing);
  EXPECT_EQ(SendAll(sender), Numbers({2, 3, 4}));
  sender.TakeAck(1, 0, At(0));
  EXPECT_EQ(SendAll(sender), Numbers());
  sender.TakeAck(2, 0, At(0));
  sender.TakeAck(2, 0, At(0));
  EXPECT_EQ(SendAll(sender), Numbers({3, 4}));
}

TEST(ReplicationSender, ANewCommitPointIsNoGap) {
  ReplicationSender sender = WithEntries(3);
  SendAll(sender);
  sender.TakeAck(2, 0, At(0));
  sender.TakeAck(2, 1, At(0));
  sender.TakeAck(2, 2, At(0));
  EXPECT_EQ(SendAll(sender), Numbers());
}

TEST(ReplicationSender, AnOldAcknowledgementIsNoNewsLater) {
  ReplicationSender sender = WithEntries(3);
  SendAll(sender);
  EXPECT_EQ(sender.TakeAck(0, 0, At(0)), ReplicationSender::Outcome::kNothing);
  EXPECT_EQ(SendAll(sender), Numbers({1, 2, 3}));
  sender.TakeAck(2, 0, At(0));
  SendAll(sender);
  EXPECT_EQ(sender.TakeAck(0, 0, At(0)), ReplicationSender::Outcome::kNothing);
  EXPECT_EQ(sender.acked(), 2u);
  EXPECT_EQ(SendAll(sender), Numbers());
}

TEST(ReplicationSender, AnAcknowledgementOfAnEntryNeverSentIsIgnored) {
  ReplicationSender sender = WithEntries(2);
  SendAll(sender);
  EXPECT_EQ(sender.TakeAck(99, 0, At(0)), ReplicationSender::Outcome::kNothing);
  EXPECT_EQ(sender.acked(), 0u);
}

TEST(ReplicationSender, AnAcknowledgementMayComeBetweenRewindingAndSendingAgain) {
  ReplicationSender sender = WithEntries(3);
  SendAll(sender);
  sender.Rewind();
  EXPECT_EQ(sender.TakeAck(2, 0, At(0)), ReplicationSender::Outcome::kProgress);
  EXPECT_EQ(SendAll(sender), Numbers({3}));
  sender.TakeAck(3, 0, At(0));
  EXPECT_EQ(sender.in_flight_bytes(), 0u);
}

}  // namespace
}  // namespace leeway::ps
