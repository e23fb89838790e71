#include "ps/consistency/worker_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::ps {
namespace {

using proto::WorkerState;
using testing::ElementsAre;
using Clock = WorkerClocks::WorkerClock;

WorkerClocks ThreeWorkers() {
  WorkerClocks clocks;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    clocks.Set(rank, 100 + rank, WorkerState::kAlive);
  }
  return clocks;
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
  WorkerClocks clocks = ThreeWorkers();
  EXPECT_TRUE(clocks.Advance(0, 100, 4));
  EXPECT_TRUE(clocks.Advance(1, 101, 2));
  EXPECT_EQ(clocks.slowest(), 0u);
  EXPECT_TRUE(clocks.Advance(2, 102, 3));
  EXPECT_EQ(clocks.slowest(), 2u);
  EXPECT_THAT(clocks.Behind(4), ElementsAre(Clock{1, 2}, Clock{2, 3}));
  EXPECT_EQ(clocks.DescribeBehind(4), "worker 1 is at clock 2, worker 2 at clock 3");
  EXPECT_EQ(clocks.DescribeBehind(2), "");
}

TEST(WorkerClocks, ClocksOnlyGrowAndOnlyForTheLivingOne) {
  WorkerClocks clocks = ThreeWorkers();
  EXPECT_TRUE(clocks.Advance(0, 100, 4));
  EXPECT_FALSE(clocks.Advance(0, 100, 4));
  EXPECT_FALSE(clocks.Advance(0, 100, 3));
  EXPECT_FALSE(clocks.Advance(0, 999, 9));  // another incarnation
  EXPECT_FALSE(clocks.Advance(7, 107, 9));  // unknown
  EXPECT_EQ(clocks.ClockOf(0), 4u);
  EXPECT_EQ(clocks.ClockOf(7), 0u);
}

TEST(WorkerClocks, DeadAndLeftWorkersAreNotWaitedFor) {
  for (WorkerState gone : {WorkerState::kLeft, WorkerState::kDead}) {
    WorkerClocks clocks = ThreeWorkers();
    clocks.Advance(0, 100, 5);
    clocks.Advance(1, 101, 4);
    clocks.Advance(2, 102, 1);
    clocks.Set(2, 102, gone);
    EXPECT_EQ(clocks.slowest(), 4u);
    EXPECT_EQ(clocks.living(), 2u);
    EXPECT_FALSE(clocks.IsAlive(2));
    EXPECT_FALSE(clocks.Advance(2, 102, 9));
    EXPECT_EQ(clocks.DescribeBehind(5), "worker 1 is at clock 4");
    // What it had ended stays ended.
    EXPECT_EQ(clocks.CountEnded(0), 3u);
    EXPECT_EQ(clocks.CountEnded(1), 2u);
  }
}

// A worker that was replaced on its rank, one that has died and one that has left.
TEST(WorkerClocks, AnotherReplicaCountsWhoHasEndedAnIteration) {
  const auto with_changes = [](WorkerClocks clocks) {
    clocks.Set(0, 555, WorkerState::kAlive, /*late=*/true);
    clocks.Set(1, 101, WorkerState::kDead);
    clocks.Set(2, 102, WorkerState::kLeft);
    return clocks;
  };
  WorkerClocks from = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) from.Advance(rank, 100 + rank, 3);
  from = with_changes(from);
  WorkerClocks to = with_changes(ThreeWorkers());
  EXPECT_TRUE(from.HasLeft(2, 102));
  EXPECT_FALSE(from.HasLeft(1, 101));
  EXPECT_TRUE(from.EndedFrom(3).empty());
  for (int twice = 0; twice < 2; ++twice) {
    for (const WorkerClocks::Ended& ended : from.EndedFrom(2)) to.NoteEnded(ended);
  }
  EXPECT_EQ(to.CountEnded(2), 3u);
  EXPECT_EQ(to.CountEnded(3), 0u);
  EXPECT_TRUE(to.HasEnded(0, 100, 2));
  EXPECT_FALSE(to.HasEnded(0, 555, 2));
}

TEST(WorkerClocks, AWorkerThatComesBackKeepsItsClock) {
  WorkerClocks clocks = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) clocks.Advance(rank, 100 + rank, 3);
  clocks.Set(2, 102, WorkerState::kDead);
  clocks.Advance(0, 100, 6);
  clocks.Advance(1, 101, 6);
  EXPECT_EQ(clocks.slowest(), 6u);
  clocks.Set(2, 102, WorkerState::kAlive);
  EXPECT_EQ(clocks.slowest(), 3u);
  EXPECT_TRUE(clocks.Advance(2, 102, 7));
  EXPECT_EQ(clocks.slowest(), 6u);
}

TEST(WorkerClocks, ANewIncarnationStartsAtZero) {
  WorkerClocks clocks = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) clocks.Advance(rank, 100 + rank, 3);
  clocks.Set(1, 555, WorkerState::kAlive);
  EXPECT_EQ(clocks.slowest(), 0u);
  EXPECT_EQ(clocks.living(), 3u);
  EXPECT_FALSE(clocks.Advance(1, 101, 9));
  EXPECT_TRUE(clocks.Advance(1, 555, 3));
  EXPECT_EQ(clocks.slowest(), 3u);
}

TEST(WorkerClocks, WithoutLivingWorkersTheLastSlowestClockStands) {
  WorkerClocks clocks = ThreeWorkers();
  for (std::uint32_t rank = 0; rank < 3; ++rank) clocks.Advance(rank, 100 + rank, rank + 1);
  for (std::uint32_t rank = 0; rank < 3; ++rank) clocks.Set(rank, 100 + rank, WorkerState::kLeft);
  EXPECT_EQ(clocks.living(), 0u);
  EXPECT_EQ(clocks.slowest(), 3u);
}

TEST(WorkerClocks, ForgetFromKeepsTheClockAWorkerBeganAt) {
  WorkerClocks clocks = ThreeWorkers();
  clocks.Set(3, 103, WorkerState::kAlive, /*late=*/true);
  clocks.Enter(3, 103, 6, 6);
  for (std::uint32_t rank = 0; rank < 3; ++rank) clocks.Advance(rank, 100 + rank, 4 + rank);
  EXPECT_EQ(clocks.slowest(), 4u);
  clocks.ForgetFrom(5);
  EXPECT_THAT(clocks.Living(), ElementsAre(Clock{0, 4}, Clock{1, 5}, Clock{2, 5}, Clock{3, 6}));
  EXPECT_EQ(clocks.slowest(), 4u);
  clocks.ForgetFrom(2);
  EXPECT_EQ(clocks.slowest(), 2u);
}

// Another has its rank: it counts in the means of the clocks that it had ended for certain.
TEST(WorkerClocks, ForgetFromAppliesToReplacedWorkers) {
  WorkerClocks clocks = ThreeWorkers();
  clocks.Advance(0, 100, 6);
  clocks.Set(0, 200, WorkerState::kAlive, /*late=*/true);
  ASSERT_TRUE(clocks.HasEnded(0, 100, 5));
  clocks.ForgetFrom(4);
  EXPECT_FALSE(clocks.HasEnded(0, 100, 4));
  EXPECT_TRUE(clocks.HasEnded(0, 100, 3));
}

TEST(WorkerClocks, NamesAFewAndCountsTheRest) {
  WorkerClocks clocks;
  for (std::uint32_t rank = 0; rank < 11; ++rank) clocks.Set(rank, 1, WorkerState::kAlive);
  EXPECT_EQ(clocks.DescribeBehind(1),
            "worker 0 is at clock 0, worker 1 at clock 0, worker 2 at clock 0, "
            "worker 3 at clock 0, worker 4 at clock 0, worker 5 at clock 0, "
            "worker 6 at clock 0, worker 7 at clock 0 and 3 more");
}

TEST(WorkerClocksTest, TheClockThatSoManyHaveReached) {
  WorkerClocks clocks;
  EXPECT_EQ(clocks.ReachedBy(2), 0u);
  const std::uint64_t at[] = {5, 9, 9, 2};
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    clocks.Set(rank, 1, proto::WorkerState::kAlive);
    clocks.Advance(rank, 1, at[rank]);
  }
  EXPECT_EQ(clocks.ReachedBy(1), 9u);
  EXPECT_EQ(clocks.ReachedBy(2), 9u);
  EXPECT_EQ(clocks.ReachedBy(3), 5u);
  EXPECT_EQ(clocks.ReachedBy(4), 2u);
  EXPECT_EQ(clocks.ReachedBy(5), 2u);
  clocks.Set(1, 1, proto::WorkerState::kDead);
  EXPECT_EQ(clocks.ReachedBy(2), 5u);
  EXPECT_TRUE(clocks.RunsAhead(0, 1, 7));
  EXPECT_FALSE(clocks.RunsAhead(0, 1, 7));
  EXPECT_FALSE(clocks.RunsAhead(0, 2, 9));  // another incarnation
  EXPECT_EQ(clocks.ReachedBy(2), 7u);
  EXPECT_EQ(clocks.slowest(), 2u);
}

}  // namespace
}  // namespace leeway::ps
