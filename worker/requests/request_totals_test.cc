#include "worker/requests/request_totals.h"

#include "gtest/gtest.h"

namespace leeway::worker::request_totals_test {

TEST(RequestTotalsTest, ARetainedPushIsAnsweredAndKeepsItsBytes) {
  RequestTotals totals;
  Request push;
  push.op = proto::Op::kPush;
  push.bytes = 100;
  totals.OnSubmitted(push);
  EXPECT_EQ(totals.unanswered_pushes(), 1u);
  totals.OnRetained(&push);
  EXPECT_TRUE(push.retained);
  EXPECT_EQ(totals.unanswered_pushes(), 0u);
  EXPECT_EQ(totals.retained_pushes(), 1u);
  EXPECT_EQ(totals.retained_bytes(), 100u);
  totals.OnEnded(push);
  EXPECT_EQ(totals.retained_pushes(), 0u);
  EXPECT_EQ(totals.retained_bytes(), 0u);
}

TEST(RequestTotalsTest, AnAbandonedPushThatIsRetainedIsAbandonedNoMore) {
  RequestTotals totals;
  Request push;
  push.op = proto::Op::kPush;
  push.bytes = 100;
  totals.OnSubmitted(push);
  totals.OnAbandoned(&push);
  EXPECT_EQ(totals.abandoned_bytes(), 100u);
  totals.OnRetained(&push);
  EXPECT_FALSE(push.abandoned);
  EXPECT_EQ(totals.abandoned_bytes(), 0u);
  totals.OnEnded(push);
  EXPECT_EQ(totals.abandoned_bytes(), 0u);
}

TEST(RequestTotalsTest, APullIsNoUnansweredPush) {
  RequestTotals totals;
  Request pull;
  pull.op = proto::Op::kPull;
  totals.OnSubmitted(pull);
  EXPECT_EQ(totals.unanswered_pushes(), 0u);
  totals.OnEnded(pull);
  EXPECT_EQ(totals.unanswered_pushes(), 0u);
}

}  // namespace leeway::worker::request_totals_test
