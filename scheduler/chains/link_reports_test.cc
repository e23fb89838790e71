#include "scheduler/chains/link_reports.h"

#include <gtest/gtest.h>

namespace leeway::scheduler::apart_pairs_test {
namespace {

const absl::Time kNow = absl::UnixEpoch();

TEST(ApartPairsTest, APairIsKeptForAWhileWhicheverServerReportsIt) {
  ApartPairs pairs(absl::Seconds(4), absl::Seconds(16));
  EXPECT_EQ(pairs.Note(2, 1, kNow), absl::Seconds(4));
  EXPECT_EQ(pairs.Note(1, 2, kNow + absl::Seconds(1)), absl::ZeroDuration());
  EXPECT_TRUE(pairs.apart().contains({1, 2}));
  EXPECT_FALSE(pairs.Expire(kNow + absl::Seconds(3)));
  EXPECT_TRUE(pairs.Expire(kNow + absl::Seconds(4)));
  EXPECT_TRUE(pairs.apart().empty());
}

TEST(ApartPairsTest, OneThatIsReportedAgainSoonIsKeptForLonger) {
  ApartPairs pairs(absl::Seconds(4), absl::Seconds(10));
  absl::Time now = kNow;
  for (const int seconds : {4, 8, 10, 10}) {
    EXPECT_EQ(pairs.Note(1, 2, now), absl::Seconds(seconds));
    now += absl::Seconds(seconds);
    EXPECT_TRUE(pairs.Expire(now));
    now += absl::Seconds(3);
    EXPECT_FALSE(pairs.Expire(now));
  }
  pairs.Expire(now + absl::Minutes(1));
  EXPECT_EQ(pairs.Note(1, 2, now + absl::Minutes(1)), absl::Seconds(4));
}

TEST(ApartPairsTest, PairsOfAServerThatIsGoneAreForgotten) {
  ApartPairs pairs(absl::Seconds(4), absl::Seconds(16));
  pairs.Note(1, 2, kNow);
  pairs.Note(2, 3, kNow);
  pairs.Note(1, 3, kNow);
  pairs.Forget(2);
  EXPECT_EQ(pairs.apart().size(), 1u);
  EXPECT_EQ(pairs.Note(1, 2, kNow), absl::Seconds(4));
}

TEST(ApartPairsTest, TheirNumberIsLimited) {
  ApartPairs pairs(absl::Seconds(4), absl::Seconds(16));
  for (std::uint32_t i = 0; i < 3 * kApartPairsMax; ++i) {
    pairs.Note(0, i + 1, kNow + absl::Milliseconds(i));
  }
  EXPECT_EQ(pairs.apart().size(), kApartPairsMax);
  EXPECT_FALSE(pairs.apart().contains({0, 1}));
  EXPECT_TRUE(pairs.apart().contains({0, 3 * kApartPairsMax}));
}

}  // namespace
}  // namespace leeway::scheduler::apart_pairs_test
