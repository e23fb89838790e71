#include "ps/consistency/worker_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::ps {
namespace {

using proto::WorkerState;
using testing::ElementsAre;
using Clock = WorkerClocks::WorkerClock;

WorkerClocks ThreeWorkers() {
  WorkerClocks progress;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    progress.Set(rank, 100 + rank, WorkerState::kAlive);
  }
  return progress;
}

TEST(WorkerClocks, StartsAtZero) {
  WorkerClocks nobody;
  EXPECT_EQ(nobody.slowest(), 0u);
  EXPECT_EQ(nobody.living(), 0u);
  EXPECT_EQ(nobody.DescribeBehind(5), "");
  EXPECT_EQ(ThreeWorkers().slowest(), 0u);
  EXPECT_EQ(ThreeWorkers().living(), 3u);
}

TEST(WorkerClocks, TheSlowestDecides) {
  WorkerClocks progress = ThreeWorkers();
  EXPECT_TRUE(progress.Advance(0, 100, 4));
  EXPECT_TRUE(progress.Advance(1, 101, 2));
  EXPECT_EQ(progress.slowest(), 0u);
  EXPECT_TRUE(progress.Advance(2, 102, 3));
  EXPECT_EQ(progress.slowest(), 2u);
  EXPECT_THAT(progress.Behind(4), ElementsAre(Clock{1, 2}, Clock{2, 3}));
  EXPECT_EQ(progress.DescribeBehind(4), "worker 1 is at clock 2, worker 2 at clock 3");
  EXPECT_EQ(progress.DescribeBehind(2), "");
}

TEST(WorkerClocks, ClocksOnlyGrowAndOnlyForTheLivingOne) {
  WorkerClocks progress = ThreeWorkers();
  EXPECT_TRUE(progress.Advance(0, 100, 4));
  EXPECT_FALSE(progress.Advance(0, 100, 4));
  EXPECT_FALSE(progress.Advance(0, 100, 3));
  EXPECT_FALSE(progress.Advance(0, 999, 9));  // another incarnation
  EXPECT_FALSE(progress.Advance(7, 107, 9));  // unknown
  EXPECT_EQ(progress.ClockOf(0), 4u);
  EXPECT_EQ(progress.ClockOf(7), 0u);
}

TEST(WorkerClocks, DeadAndLeftWorkersAreNotWaitedFor) {
  for (WorkerState gone : {WorkerState::kLeft, WorkerState::kDead}) {
    WorkerClocks progress = ThreeWorkers();
    progress.Advance(0, 100, 5);
    progress.Advance(1, 101, 4);
    progress.Advance(2, 102, 1);
    progress.Set(2, 102, gone);
    EXPECT_EQ(progress.slowest(), 4u);
    EXPECT_EQ(progress.living(), 2u);
    EXPECT_FALSE(progress.IsAlive(2));
    EXPECT_FALSE(progress.Advance(2, 102, 9));
    EXPECT_EQ(progress.DescribeBehind(5), "worker 1 is at clock 4");
    // What it had ended stays ended.
    EXPECT_EQ(progress.CountEnded(0), 3u);
    EXPECT_EQ(progress.CountEnded(1), 2u);
  }
}

TEST(WorkerClocks, AWorkerThatComesBackKeepsItsClock) {
  WorkerClocks progress = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) progress.Advance(rank, 100 + rank, 3);
  progress.Set(2, 102, WorkerState::kDead);
  progress.Advance(0, 100, 6);
  progress.Advance(1, 101, 6);
  EXPECT_EQ(progress.slowest(), 6u);
  progress.Set(2, 102, WorkerState::kAlive);
  EXPECT_EQ(progress.slowest(), 3u);
  EXPECT_TRUE(progress.Advance(2, 102, 7));
  EXPECT_EQ(progress.slowest(), 6u);
}

TEST(WorkerClocks, ANewIncarnationStartsAtZero) {
  WorkerClocks progress = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) progress.Advance(rank, 100 + rank, 3);
  progress.Set(1, 555, WorkerState::kAlive);
  EXPECT_EQ(progress.slowest(), 0u);
  EXPECT_EQ(progress.living(), 3u);
  EXPECT_FALSE(progress.Advance(1, 101, 9));
  EXPECT_TRUE(progress.Advance(1, 555, 3));
  EXPECT_EQ(progress.slowest(), 3u);
}

TEST(WorkerClocks, WithoutLivingWorkersTheLastSlowestClockStands) {
  WorkerClocks progress = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) progress.Advance(rank, 100 + rank, rank + 1);
  for (std::uint32_t rank = 0; rank < 3; ++rank) progress.Set(rank, 100 + rank, WorkerState::kLeft);
  EXPECT_EQ(progress.living(), 0u);
  EXPECT_EQ(progress.slowest(), 3u);
}

TEST(WorkerClocks, ForgetFromKeepsTheClockAWorkerBeganAt) {
  WorkerClocks progress = ThreeWorkers();
  progress.Set(3, 103, WorkerState::kAlive, /*late=*/true);
  progress.Enter(3, 103, 6, 6);
  for (std::uint32_t rank = 0; rank < 3; ++rank) progress.Advance(rank, 100 + rank, 4 + rank);
  EXPECT_EQ(progress.slowest(), 4u);
  progress.ForgetFrom(5);
  EXPECT_THAT(progress.Living(), ElementsAre(Clock{0, 4}, Clock{1, 5}, Clock{2, 5}, Clock{3, 6}));
  EXPECT_EQ(progress.slowest(), 4u);
  progress.ForgetFrom(2);
  EXPECT_EQ(progress.slowest(), 2u);
}

// Another has its rank: it counts in the means of the clocks that it had ended for certain.
TEST(WorkerClocks, ForgetFromAppliesToReplacedWorkers) {
  WorkerClocks progress = ThreeWorkers();
  progress.Advance(0, 100, 6);
  progress.Set(0, 200, WorkerState::kAlive, /*late=*/true);
  ASSERT_TRUE(progress.HasEnded(0, 100, 5));
  progress.ForgetFrom(4);
  EXPECT_FALSE(progress.HasEnded(0, 100, 4));
  EXPECT_TRUE(progress.HasEnded(0, 100, 3));
}

TEST(WorkerClocks, NamesAFewAndCountsTheRest) {
  WorkerClocks progress;
  for (std::uint32_t rank = 0; rank < 11; ++rank) progress.Set(rank, 1, WorkerState::kAlive);
  EXPECT_EQ(progress.DescribeBehind(1),
            "worker 0 is at clock 0, worker 1 at clock 0, worker 2 at clock 0, "
            "worker 3 at clock 0, worker 4 at clock 0, worker 5 at clock 0, "
            "worker 6 at clock 0, worker 7 at clock 0 and 3 more");
}

}  // namespace
}  // namespace leeway::ps
