#include "proto/messages/table_settings_schedule.h"

#include <gtest/gtest.h>

namespace leeway::proto {
namespace {

TableSettings Settings(std::uint32_t number, std::uint64_t since, bool decided = true) {
  return {.table = 3, .number = number, .since = since, .decided = decided};
}

std::uint32_t NumberAt(const TableSettingsSchedule& schedule, std::uint64_t clock) {
  const TableSettings* const settings = schedule.At(clock);
  return settings == nullptr ? 0 : settings->number;
}

TEST(TableSettingsSchedule, EachHoldsFromItsClockOn) {
  TableSettingsSchedule schedule;
  EXPECT_EQ(NumberAt(schedule, 100), 0u);
  const std::vector<TableSettings> all = {Settings(1, 10), Settings(2, 20), Settings(3, 20)};
  schedule.Follow(all);
  EXPECT_EQ(NumberAt(schedule, 9), 0u);
  EXPECT_EQ(NumberAt(schedule, 10), 1u);
  EXPECT_EQ(NumberAt(schedule, 19), 1u);
  EXPECT_EQ(NumberAt(schedule, 20), 3u);
}

TEST(TableSettingsSchedule, BeforeTheOldestThatIsKnownThatOneHolds) {
  TableSettingsSchedule schedule;
  const std::vector<TableSettings> all = {Settings(5, 10), Settings(6, 20)};
  schedule.Follow(all);
  EXPECT_EQ(NumberAt(schedule, 0), 5u);
  EXPECT_FALSE(schedule.Knows(9));
  EXPECT_TRUE(schedule.Knows(10));
  schedule.Follow(std::vector<TableSettings>{Settings(1, 10)});
  EXPECT_TRUE(schedule.Knows(9));
}

TEST(TableSettingsSchedule, KnowsWhatIsNotDecided) {
  TableSettingsSchedule schedule;
  const std::vector<TableSettings> all = {Settings(1, 10), Settings(2, 20, /*decided=*/false)};
  schedule.Follow(all);
  EXPECT_FALSE(schedule.UndecidedAt(19));
  EXPECT_TRUE(schedule.UndecidedAt(20));
  // It may still be put off: clock 20 has the settings before it.
  EXPECT_EQ(NumberAt(schedule, 20), 1u);
}

TEST(TableSettingsSchedule, FindsThoseOfATable) {
  const std::vector<TableSettings> all = {{.table = 1, .number = 1},
                                          {.table = 3, .number = 1},
                                          {.table = 3, .number = 2},
                                          {.table = 4}};
  EXPECT_EQ(TableSettingsOf(all, 3).size(), 2u);
  EXPECT_EQ(TableSettingsOf(all, 3)[1].number, 2u);
  EXPECT_TRUE(TableSettingsOf(all, 2).empty());
}

TEST(TableSettingsSchedule, ChangesWhatSettingsAreAndNothingElse) {
  TableSpec spec = TableSpec::Dense("w", {4});
  spec.updater = {"sgd", {{"learning_rate", 0.5}}};
  TableSpec other = spec;
  other.updater.parameters = {{"learning_rate", 0.1}};
  other.consistency = Consistency::Asp();
  other.nonfinite = NonFinite::kRefuse;
  EXPECT_EQ(WithTableSettings(spec, TableSettingsOf(other)), other);
}

}  // namespace
}  // namespace leeway::proto
