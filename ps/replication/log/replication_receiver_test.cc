#include "ps/replication/log/replication_receiver.h"

#include <gtest/gtest.h>

namespace leeway::ps {
namespace {

using Verdict = ReplicationReceiver::Verdict;

TEST(ReplicationReceiver, TakesEachEntryOnceInOrder) {
  ReplicationReceiver receiver;
  EXPECT_EQ(receiver.Judge(5, 1), Verdict::kNext);
  receiver.Take(5, 1);
  EXPECT_EQ(receiver.Judge(5, 1), Verdict::kSeen);
  EXPECT_EQ(receiver.Judge(5, 3), Verdict::kGap);
  EXPECT_EQ(receiver.Judge(5, 2), Verdict::kNext);
  receiver.Take(5, 2);
  EXPECT_EQ(receiver.received(), 2u);
}

TEST(ReplicationReceiver, ANewStreamReplacesAnOlderOneFromItsBeginning) {
  ReplicationReceiver receiver;
  EXPECT_EQ(receiver.Judge(5, 2), Verdict::kUnknown);
  receiver.Take(5, 1);
  receiver.Take(5, 2);
  EXPECT_EQ(receiver.Judge(6, 2), Verdict::kUnknown);
  EXPECT_EQ(receiver.Judge(6, 1), Verdict::kNext);
  receiver.Take(6, 1);
  EXPECT_EQ(receiver.Judge(5, 3), Verdict::kOld);
  EXPECT_EQ(receiver.Judge(5, 1), Verdict::kOld);
  EXPECT_EQ(receiver.received(), 1u);
}

TEST(ReplicationReceiver, AnotherSenderBeginsAnew) {
  ReplicationReceiver receiver;
  receiver.Take(9, 1);
  receiver.Forget();
  EXPECT_EQ(receiver.stream(), 0u);
  EXPECT_EQ(receiver.Judge(3, 1), Verdict::kNext);
  EXPECT_EQ(receiver.Judge(0, 1), Verdict::kOld);  // no stream at all
}

}  // namespace
}  // namespace leeway::ps
