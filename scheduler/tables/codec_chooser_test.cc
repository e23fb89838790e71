#include "scheduler/tables/codec_chooser.h"

#include <gtest/gtest.h>

#include "proto/messages/limits.h"

namespace leeway::scheduler {
namespace codec_chooser_test {
namespace {

constexpr std::uint32_t kTable = 3;

class CodecChooserTest : public testing::Test {
 protected:
  void Report(std::uint32_t worker, double none, double onebit, double link = 1e9) {
    chooser_.OnReport(
        worker, {.table = kTable, .lossy = 2, .costs = {none, onebit}, .link_bytes_per_s = link});
  }
  std::optional<CodecChooser::Choice> Look(std::uint32_t present) {
    return chooser_.Look(kTable, present, {"none", "onebit"},
                         [](std::uint32_t worker) { return "worker " + std::to_string(worker); });
  }
  std::optional<CodecChooser::Choice> LookOften(std::uint32_t present) {
    for (int i = 1; i < kLooksAlike; ++i) {
      if (const auto choice = Look(present)) return choice;
    }
    return Look(present);
  }

  CodecChooser chooser_;
};

TEST_F(CodecChooserTest, WithoutReportsNothingIsChosen) { EXPECT_FALSE(LookOften(0).has_value()); }

TEST_F(CodecChooserTest, TheSlowestWorkerDecides) {
  Report(1, 1, 2);
  Report(2, 80, 3, 12.5e6);
  const auto choice = LookOften(0);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->choice, 1u);
  EXPECT_EQ(choice->reason, "worker 2 sends 12.5 MB/s: 80 ns a byte with none, 3 with onebit");
  chooser_.Forget(2);
  EXPECT_FALSE(LookOften(0).has_value());
  EXPECT_EQ(LookOften(1)->choice, 0u);
}

// Ids are not given again: a cluster that creates tables for long gets to large ones.
TEST_F(CodecChooserTest, ATableOfALargeIdHasReports) {
  constexpr std::uint32_t kLate = proto::kTablesMax + 5;
  chooser_.OnReport(1, {.table = kLate, .costs = {80, 3}, .link_bytes_per_s = 1e6});
  const auto look = [&] {
    return chooser_.Look(kLate, 0, {"none", "onebit"}, [](std::uint32_t) { return "worker 1"; });
  };
  for (int i = 1; i < kLooksAlike; ++i) EXPECT_FALSE(look().has_value());
  EXPECT_TRUE(look().has_value());
}

TEST_F(CodecChooserTest, OneLookIsNotEnough) {
  Report(1, 80, 3);
  EXPECT_FALSE(Look(0).has_value());
  Report(1, 1, 3);
  EXPECT_FALSE(Look(0).has_value());
  Report(1, 80, 3);
  for (int i = 1; i < kLooksAlike; ++i) EXPECT_FALSE(Look(0).has_value());
  EXPECT_TRUE(Look(0).has_value());
}

TEST_F(CodecChooserTest, AReportOfOtherCodecsIsIgnored) {
  chooser_.OnReport(1, {.table = kTable, .costs = {1, 2, 3}, .link_bytes_per_s = 1});
  EXPECT_FALSE(LookOften(0).has_value());
}

}  // namespace
}  // namespace codec_chooser_test
}  // namespace leeway::scheduler
