#include "ps/consistency/dynamic_bound.h"

#include <gtest/gtest.h>

namespace leeway::ps {
namespace {

constexpr absl::Duration kSecond = absl::Seconds(1);

// Zhao et al., figure 2: the fast worker takes 1, the slow one 4. If the fast one waits at once it
// waits 3; after one more iteration 2, after three 0.
TEST(DynamicBoundTest, GoesOnForAsManyIterationsAsMakeTheWaitTheShortest) {
  EXPECT_EQ(DynamicBound::Extra(kSecond, 4 * kSecond, kSecond, 0), 0u);
  EXPECT_EQ(DynamicBound::Extra(kSecond, 4 * kSecond, kSecond, 1), 1u);
  EXPECT_EQ(DynamicBound::Extra(kSecond, 4 * kSecond, kSecond, 2), 2u);
  EXPECT_EQ(DynamicBound::Extra(kSecond, 4 * kSecond, kSecond, 8), 3u);
  // Just after the slow one has ended its own, there is nothing to wait for that soon.
  EXPECT_EQ(DynamicBound::Extra(2 * kSecond, 3 * kSecond, absl::ZeroDuration(), 2), 1u);
  // Of two numbers with the same wait the smaller.
  EXPECT_EQ(DynamicBound::Extra(4 * kSecond, 4 * kSecond, kSecond, 8), 0u);
}

class DynamicBoundOfTwoTest : public testing::Test {
 protected:
  DynamicBoundOfTwoTest() {
    for (const std::uint32_t rank : {kFast, kSlow}) {
      clocks_.Set(rank, 1, proto::WorkerState::kAlive);
    }
  }
  void Tick(std::uint32_t rank, std::uint64_t clock, absl::Duration at) {
    clocks_.Advance(rank, 1, clock);
    bound_.Ticked(rank, clock, absl::UnixEpoch() + at);
  }
  std::uint64_t BoundAt(std::uint64_t clock, absl::Duration at) {
    return bound_.BoundFor(kFast, clock, /*low=*/2, /*high=*/5, clocks_, absl::UnixEpoch() + at);
  }

  static constexpr std::uint32_t kFast = 0, kSlow = 1;
  WorkerClocks clocks_;
  DynamicBound bound_;
};

TEST_F(DynamicBoundOfTwoTest, IsTheLowerOneBeforeSpeedsAreKnown) {
  Tick(kFast, 3, kSecond);
  EXPECT_EQ(BoundAt(3, kSecond), 2u);
}

TEST_F(DynamicBoundOfTwoTest, TheFastestIsLetThroughForTheIterationsForetold) {
  // The slow one takes 10, the fast one 1: all that the upper bound allows bring it nearer.
  Tick(kSlow, 1, 10 * kSecond);
  Tick(kSlow, 2, 20 * kSecond);
  for (std::uint64_t clock = 1; clock <= 5; ++clock) Tick(kFast, clock, (20 + clock) * kSecond);
  EXPECT_EQ(BoundAt(5, 25 * kSecond), 5u);  // 3 ahead of the slow one
  Tick(kFast, 6, 26 * kSecond);
  EXPECT_EQ(BoundAt(6, 26 * kSecond), 5u);
  Tick(kFast, 7, 27 * kSecond);
  EXPECT_EQ(BoundAt(7, 27 * kSecond), 5u);
  Tick(kFast, 8, 28 * kSecond);
  EXPECT_EQ(BoundAt(8, 28 * kSecond), 2u);  // 6 ahead is beyond the upper bound
}

TEST_F(DynamicBoundOfTwoTest, BeyondTheIterationsForetoldItIsForetoldAnew) {
  // The slow one takes 10, the fast one 4: after one more it has to wait 1, after none 5.
  Tick(kSlow, 1, 10 * kSecond);
  Tick(kSlow, 2, 20 * kSecond);
  Tick(kFast, 4, 21 * kSecond);
  Tick(kFast, 5, 25 * kSecond);
  EXPECT_EQ(BoundAt(5, 25 * kSecond), 5u);
  Tick(kFast, 6, 29 * kSecond);
  EXPECT_EQ(BoundAt(6, 29 * kSecond), 2u);
}

TEST_F(DynamicBoundOfTwoTest, AWaitIsNotForetoldTwice) {
  // The slow one is about to end its iteration: to wait is best.
  Tick(kSlow, 1, 10 * kSecond);
  Tick(kSlow, 2, 20 * kSecond);
  Tick(kFast, 4, 24 * kSecond);
  Tick(kFast, 5, 29 * kSecond);
  EXPECT_EQ(BoundAt(5, 29 * kSecond), 2u);
  EXPECT_EQ(BoundAt(5, 30 * kSecond + absl::Milliseconds(1)), 2u);
}

TEST_F(DynamicBoundOfTwoTest, OnlyTheFastestIsLetThrough) {
  clocks_.Set(2, 1, proto::WorkerState::kAlive);
  Tick(kSlow, 1, 10 * kSecond);
  Tick(kSlow, 2, 20 * kSecond);
  Tick(kFast, 4, 21 * kSecond);
  Tick(kFast, 5, 22 * kSecond);
  Tick(2, 9, 22 * kSecond);
  EXPECT_EQ(BoundAt(5, 22 * kSecond), 2u);
}

}  // namespace
}  // namespace leeway::ps
