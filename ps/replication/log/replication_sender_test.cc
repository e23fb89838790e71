#include "ps/replication/log/replication_sender.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leeway::ps {
namespace {

constexpr std::uint64_t kStream = 7;

absl::Time At(int milliseconds) { return absl::UnixEpoch() + absl::Milliseconds(milliseconds); }

Item ItemOf(std::size_t payload_bytes) {
  Item item;
  item.payload = {runtime::Buffer::CopyOf(std::string(payload_bytes, 'x'))};
  return item;
}

Outbox WithItems(int count, const Outbox::Limits& limits = {}) {
  Outbox outbox(kStream, limits);
  for (int i = 0; i < count; ++i) outbox.Append(ItemOf(100));
  return outbox;
}

// Sends what may be sent; the numbers that left.
std::vector<std::uint64_t> SendAll(Outbox& outbox, absl::Time now = At(0)) {
  std::vector<std::uint64_t> sent;
  while (Item* next = outbox.Next()) {
    EXPECT_EQ(next->header.stream, kStream);
    sent.push_back(next->header.item);
    outbox.NoteSent(now);
  }
  return sent;
}

using Numbers = std::vector<std::uint64_t>;

TEST(Outbox, NumbersItemsAndSendsEachOnce) {
  Outbox outbox = WithItems(3);
  EXPECT_EQ(SendAll(outbox), Numbers({1, 2, 3}));
  EXPECT_TRUE(outbox.all_sent());
  EXPECT_EQ(outbox.Append(ItemOf(1)), 4u);
  EXPECT_EQ(SendAll(outbox), Numbers({4}));
  EXPECT_EQ(outbox.TakeAck(2, 0, At(0)), Outbox::Outcome::kProgress);
  EXPECT_FALSE(outbox.all_acked());
  EXPECT_EQ(outbox.TakeAck(4, 0, At(0)), Outbox::Outcome::kProgress);
  EXPECT_TRUE(outbox.all_acked());
  EXPECT_EQ(outbox.in_flight_bytes(), 0u);
  EXPECT_EQ(outbox.Append(ItemOf(1)), 5u);
}

TEST(Outbox, SendsNoMoreThanTheWindow) {
  const std::uint64_t one = ItemOf(100).bytes();
  Outbox outbox = WithItems(5, {.window_bytes = 2 * one});
  EXPECT_EQ(SendAll(outbox), Numbers({1, 2}));
  outbox.TakeAck(1, 0, At(0));
  EXPECT_EQ(SendAll(outbox), Numbers({3}));
  EXPECT_EQ(outbox.in_flight_bytes(), 2 * one);
}

TEST(Outbox, WhatIsLargerThanTheWindowGoesAlone) {
  Outbox outbox = WithItems(1, {.window_bytes = 1000});
  outbox.Append(ItemOf(5000));
  outbox.Append(ItemOf(100));
  EXPECT_EQ(SendAll(outbox), Numbers({1}));
  outbox.TakeAck(1, 0, At(0));
  EXPECT_EQ(SendAll(outbox), Numbers({2}));
  outbox.TakeAck(2, 0, At(0));
  EXPECT_EQ(SendAll(outbox), Numbers({3}));
}

TEST(Outbox, SendsAgainWhenNothingIsHeardAndWaitsTwiceAsLongEachTime) {
  Outbox outbox =
      WithItems(2, {.resend_first = absl::Milliseconds(10), .resend_max = absl::Milliseconds(40)});
  EXPECT_EQ(outbox.due(), absl::InfiniteFuture());
  SendAll(outbox, At(0));
  for (const int due : {10, 30, 70, 110}) {
    EXPECT_EQ(outbox.due(), At(due));
    EXPECT_FALSE(outbox.RewindIfDue(At(due - 1)));
    EXPECT_TRUE(outbox.RewindIfDue(At(due)));
    EXPECT_EQ(SendAll(outbox, At(due)), Numbers({1, 2}));
  }
  outbox.TakeAck(1, 0, At(120));
  EXPECT_EQ(outbox.due(), At(130));  // progress: patient no longer
  outbox.TakeAck(2, 0, At(120));
  EXPECT_EQ(outbox.due(), absl::InfiniteFuture());
}

TEST(Outbox, AGapIsFilledAtOnceButOnlyOnce) {
  Outbox outbox = WithItems(4);
  SendAll(outbox);
  outbox.TakeAck(1, 0, At(0));
  EXPECT_EQ(outbox.TakeAck(1, 0, At(0)), Outbox::Outcome::kNothing);
  EXPECT_EQ(SendAll(outbox), Numbers({2, 3, 4}));
  outbox.TakeAck(1, 0, At(0));
  EXPECT_EQ(SendAll(outbox), Numbers());
  outbox.TakeAck(2, 0, At(0));
  outbox.TakeAck(2, 0, At(0));
  EXPECT_EQ(SendAll(outbox), Numbers({3, 4}));
}

TEST(Outbox, NewsOfWhatIsCommittedIsNoGap) {
  Outbox outbox = WithItems(3);
  SendAll(outbox);
  outbox.TakeAck(2, 0, At(0));
  outbox.TakeAck(2, 1, At(0));
  outbox.TakeAck(2, 2, At(0));
  EXPECT_EQ(SendAll(outbox), Numbers());
}

TEST(Outbox, WhatWasSaidBeforeTheBeginningHadArrivedIsNoNewsLater) {
  Outbox outbox = WithItems(3);
  SendAll(outbox);
  EXPECT_EQ(outbox.TakeAck(0, 0, At(0)), Outbox::Outcome::kNothing);
  EXPECT_EQ(SendAll(outbox), Numbers({1, 2, 3}));
  outbox.TakeAck(2, 0, At(0));
  SendAll(outbox);
  EXPECT_EQ(outbox.TakeAck(0, 0, At(0)), Outbox::Outcome::kNothing);
  EXPECT_EQ(outbox.acked(), 2u);
  EXPECT_EQ(SendAll(outbox), Numbers());
}

TEST(Outbox, AnAcknowledgementOfWhatWasNeverSentIsIgnored) {
  Outbox outbox = WithItems(2);
  SendAll(outbox);
  EXPECT_EQ(outbox.TakeAck(99, 0, At(0)), Outbox::Outcome::kNothing);
  EXPECT_EQ(outbox.acked(), 0u);
}

TEST(Outbox, AnAcknowledgementMayComeBetweenRewindingAndSendingAgain) {
  Outbox outbox = WithItems(3);
  SendAll(outbox);
  outbox.Rewind();
  EXPECT_EQ(outbox.TakeAck(2, 0, At(0)), Outbox::Outcome::kProgress);
  EXPECT_EQ(SendAll(outbox), Numbers({3}));
  outbox.TakeAck(3, 0, At(0));
  EXPECT_EQ(outbox.in_flight_bytes(), 0u);
}

}  // namespace
}  // namespace leeway::ps
