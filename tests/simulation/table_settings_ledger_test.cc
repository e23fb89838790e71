// The oracle of changed tables accepts and refuses the right maps and entries.
#include "tests/simulation/table_settings_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace leeway::simulation {
namespace settings_ledger_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t kId = 9;

class TableSettingsLedgerTest : public testing::Test {
 protected:
  TableSettingsLedgerTest() : history_(1, 2), ledger_(&history_) {
    for (WorkerLife& life : history_.lives) {
      life.incarnation = 1;
      life.known_as = {77};
    }
  }
  static proto::TableSettings Settings(std::uint32_t number, std::uint64_t since,
                                       bool decided = true) {
    return {.table = kId, .number = number, .since = since, .decided = decided};
  }
  std::string Map(std::vector<proto::TableSettings> settings) {
    return ledger_.OnMap({.version = ++version_, .table_settings = std::move(settings)});
  }
  std::string Push(std::uint64_t clock, std::uint32_t settings) {
    return ledger_.OnEntry({.kind = proto::LogEntryKind::kPush,
                            .worker = 1,
                            .incarnation = 77,
                            .table = kId,
                            .clock = clock,
                            .table_settings = settings});
  }

  History history_;
  TableSettingsLedger ledger_;
  std::uint64_t version_ = 0;
};

TEST_F(TableSettingsLedgerTest, APushIsAppliedWithTheSettingsOfItsClock) {
  EXPECT_THAT(Push(9, 0), IsEmpty());
  EXPECT_THAT(Map({Settings(1, 8, /*decided=*/false)}), IsEmpty());
  EXPECT_THAT(Map({Settings(1, 10)}), IsEmpty());
  EXPECT_THAT(Push(10, 1), IsEmpty());
  EXPECT_THAT(Push(9, 0), IsEmpty());  // late
  EXPECT_THAT(Push(9, 1), HasSubstr("in clock 9 is applied with settings 1, where settings 0"));
  EXPECT_THAT(Push(10, 0), HasSubstr("in clock 10 is applied with settings 0, where settings 1"));
}

TEST_F(TableSettingsLedgerTest, ADecisionForAClockThatIsPastComesTooLate) {
  EXPECT_THAT(Push(10, 0), IsEmpty());
  EXPECT_THAT(Map({Settings(1, 10)}), HasSubstr("applied with settings 0, where settings 1"));
  history_.lives[1].killed = 1;
  EXPECT_THAT(Map({Settings(1, 10)}), IsEmpty());
}

TEST_F(TableSettingsLedgerTest, ADecisionIsMadeOnceAndKept) {
  EXPECT_THAT(Map({Settings(1, 10)}), IsEmpty());
  EXPECT_THAT(Map({Settings(1, 10), Settings(2, 12, /*decided=*/false)}), IsEmpty());
  EXPECT_THAT(Map({Settings(1, 11)}), HasSubstr("is decided anew"));
  EXPECT_THAT(Map({Settings(1, 10), Settings(2, 10)}), HasSubstr("does not follow on"));
}

TEST_F(TableSettingsLedgerTest, NoLaterMapIsWithoutIt) {
  EXPECT_THAT(Map({Settings(1, 10)}), IsEmpty());
  EXPECT_THAT(Map({}), HasSubstr("change 1 of table 9 at clock 10, is not in the map"));
}

}  // namespace
}  // namespace settings_ledger_test
}  // namespace leeway::simulation
