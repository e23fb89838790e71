#include "worker/core/staleness.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

proto::Reply ReplyOf(std::uint64_t clock, std::uint64_t slowest) {
  proto::Reply reply;
  reply.clock = clock;
  reply.slowest_clock = slowest;
  reply.staleness = clock > slowest ? clock - slowest : 0;
  return reply;
}

TEST(StalenessTest, CountsRepliesWithinTheBound) {
  StalenessLedger ledger;
  EXPECT_TRUE(ledger.Check(Consistency::Ssp(2), 5, ReplyOf(5, 3)).ok());
  EXPECT_TRUE(ledger.Check(Consistency::Ssp(2), 5, ReplyOf(5, 6)).ok());
  EXPECT_TRUE(ledger.Check(Consistency::Asp(), 100, ReplyOf(100, 0)).ok());
  EXPECT_THAT(ledger.histogram(), ElementsAre(Pair(0, 1), Pair(2, 1), Pair(100, 1)));
  EXPECT_EQ(ledger.max(), 100u);
  EXPECT_EQ(ledger.violations(), 0u);
}

TEST(StalenessTest, RefusesAReplyThatIsTooStale) {
  StalenessLedger ledger;
  const absl::Status status = ledger.Check(Consistency::Ssp(2), 5, ReplyOf(5, 2));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("staleness bound violated: the values are 3 clocks old"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("ssp:2"));
  EXPECT_EQ(ledger.violations(), 1u);
}

TEST(StalenessTest, RefusesAReplyThatContradictsItsClocks) {
  StalenessLedger ledger;
  proto::Reply lying = ReplyOf(5, 1);
  lying.staleness = 0;
  EXPECT_EQ(ledger.Check(Consistency::Bsp(), 5, lying).code(), absl::StatusCode::kInternal);
  // A clock other than the request's would make the reply look fresh.
  EXPECT_FALSE(ledger.Check(Consistency::Bsp(), 5, ReplyOf(1, 1)).ok());
  EXPECT_FALSE(ledger.Check(Consistency::Asp(), 5, lying).ok());
  EXPECT_EQ(ledger.violations(), 3u);
}

}  // namespace
}  // namespace leeway::worker
