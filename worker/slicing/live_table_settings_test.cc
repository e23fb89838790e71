#include "worker/slicing/live_table_settings.h"

#include <gtest/gtest.h>

#include <vector>

namespace leeway::worker {
namespace {

proto::TableSettings Bound(std::uint32_t number, std::uint64_t since, std::uint64_t staleness,
                           bool decided = true) {
  return {.table = 3,
          .number = number,
          .since = since,
          .decided = decided,
          .consistency = Consistency::Ssp(staleness)};
}

// A request of clock 12 has the earlier bound.
TEST(LiveTableSettings, AnAnnouncedChangeDoesNotHoldYet) {
  LiveTableSettings settings(Consistency::Asp());
  settings.Follow(std::vector{Bound(1, 12, 2, /*decided=*/false)});
  EXPECT_TRUE(settings.UndecidedAt(12));
  EXPECT_EQ(settings.ConsistencyAt(12), Consistency::Asp());
  settings.Follow(std::vector{Bound(1, 20, 2)});
  EXPECT_FALSE(settings.UndecidedAt(20));
  EXPECT_EQ(settings.ConsistencyAt(19), Consistency::Asp());
  EXPECT_EQ(settings.ConsistencyAt(20), Consistency::Ssp(2));
}

// Servers may not know yet the change that is in the answer that opened the table.
TEST(LiveTableSettings, AChangeThatNoMapHasIsUndecided) {
  LiveTableSettings settings(Consistency::Ssp(4));
  settings.Follow(std::vector{Bound(1, 5, 2)});
  settings.Hear(std::vector{Bound(1, 5, 2), Bound(2, 9, 1)});
  EXPECT_FALSE(settings.UndecidedAt(8));
  EXPECT_EQ(settings.ConsistencyAt(8), Consistency::Ssp(2));
  EXPECT_TRUE(settings.UndecidedAt(9));
  settings.Follow(std::vector{Bound(1, 5, 2)});  // an older map
  EXPECT_TRUE(settings.UndecidedAt(9));
  settings.Follow(std::vector{Bound(1, 5, 2), Bound(2, 9, 1)});
  EXPECT_FALSE(settings.UndecidedAt(9));
  EXPECT_EQ(settings.ConsistencyAt(9), Consistency::Ssp(1));
  settings.Hear(std::vector{Bound(1, 5, 2), Bound(2, 9, 1)});  // the table is opened again
  EXPECT_FALSE(settings.UndecidedAt(9));
}

// The answer was sent before the change was decided.
TEST(LiveTableSettings, ALateAnswerTakesBackNothing) {
  LiveTableSettings settings(Consistency::Ssp(4));
  settings.Follow(std::vector{Bound(1, 12, 2)});
  settings.Hear(std::vector{Bound(1, 9, 2, /*decided=*/false)});
  EXPECT_FALSE(settings.UndecidedAt(12));
  EXPECT_EQ(settings.ConsistencyAt(12), Consistency::Ssp(2));
}

// The rate scales residuals.
TEST(LiveTableSettings, HaveTheLearningRateOfEachClock) {
  LiveTableSettings settings(Consistency::Ssp(4));
  EXPECT_EQ(settings.LearningRateAt(3), std::nullopt);
  proto::TableSettings slower = Bound(1, 12, 4), by_default = Bound(2, 20, 4);
  slower.parameters["learning_rate"] = 0.25;
  settings.Follow(std::vector{slower, by_default});
  EXPECT_EQ(settings.LearningRateAt(11), std::nullopt);
  EXPECT_EQ(settings.LearningRateAt(12), 0.25);
  EXPECT_EQ(settings.LearningRateAt(20), 1);
}

}  // namespace
}  // namespace leeway::worker
