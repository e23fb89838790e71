#include "ps/replication/log/replication_receiver.h"

#include <gtest/gtest.h>

namespace leeway::ps {
namespace {

using Verdict = Inbox::Verdict;

TEST(Inbox, TakesEachItemOnceInOrder) {
  Inbox inbox;
  EXPECT_EQ(inbox.Judge(5, 1), Verdict::kNext);
  inbox.Take(5, 1);
  EXPECT_EQ(inbox.Judge(5, 1), Verdict::kSeen);
  EXPECT_EQ(inbox.Judge(5, 3), Verdict::kGap);
  EXPECT_EQ(inbox.Judge(5, 2), Verdict::kNext);
  inbox.Take(5, 2);
  EXPECT_EQ(inbox.received(), 2u);
}

TEST(Inbox, ANewStreamReplacesAnOlderOneFromItsBeginning) {
  Inbox inbox;
  EXPECT_EQ(inbox.Judge(5, 2), Verdict::kUnknown);
  inbox.Take(5, 1);
  inbox.Take(5, 2);
  EXPECT_EQ(inbox.Judge(6, 2), Verdict::kUnknown);
  EXPECT_EQ(inbox.Judge(6, 1), Verdict::kNext);
  inbox.Take(6, 1);
  EXPECT_EQ(inbox.Judge(5, 3), Verdict::kOld);
  EXPECT_EQ(inbox.Judge(5, 1), Verdict::kOld);
  EXPECT_EQ(inbox.received(), 1u);
}

TEST(Inbox, AnotherSenderBeginsAnew) {
  Inbox inbox;
  inbox.Take(9, 1);
  inbox.Forget();
  EXPECT_EQ(inbox.stream(), 0u);
  EXPECT_EQ(inbox.Judge(3, 1), Verdict::kNext);
  EXPECT_EQ(inbox.Judge(0, 1), Verdict::kOld);  // no stream at all
}

}  // namespace
}  // namespace leeway::ps
