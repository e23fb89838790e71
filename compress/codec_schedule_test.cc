#include "compress/codec_schedule.h"

#include <gtest/gtest.h>

namespace leeway::compress {
namespace codec_schedule_test {
namespace {

proto::CodecSwitch Switch(std::uint64_t number, std::uint32_t before, std::uint32_t choice,
                          std::uint64_t clock, bool decided) {
  return {.table = 1,
          .number = number,
          .before = before,
          .choice = choice,
          .clock = clock,
          .decided = decided};
}

TEST(CodecSchedule, BeginsWithTheFirstCodec) {
  const CodecSchedule schedule;
  EXPECT_EQ(schedule.At(0), 0u);
  EXPECT_EQ(schedule.At(1ull << 60), 0u);
}

TEST(CodecSchedule, NothingIsKnownFromAnAnnouncedClockOn) {
  CodecSchedule schedule;
  EXPECT_TRUE(schedule.Follow(Switch(1, 0, 2, 10, false)));
  EXPECT_FALSE(schedule.Follow(Switch(1, 0, 2, 10, false)));
  EXPECT_EQ(schedule.At(9), 0u);
  EXPECT_EQ(schedule.At(10), std::nullopt);
  EXPECT_EQ(schedule.KnownAt(10).choice, 0u);
  EXPECT_TRUE(schedule.Follow(Switch(1, 0, 2, 14, false)));  // put off, and announced again
  EXPECT_EQ(schedule.At(13), 0u);
  EXPECT_EQ(schedule.At(14), std::nullopt);
}

TEST(CodecSchedule, AClockHasTheCodecThatWasDecidedForIt) {
  CodecSchedule schedule;
  schedule.Follow(Switch(1, 0, 2, 10, false));
  EXPECT_TRUE(schedule.Follow(Switch(1, 0, 2, 10, true)));
  EXPECT_FALSE(schedule.Follow(Switch(1, 0, 2, 10, false)));  // an older map
  EXPECT_EQ(schedule.At(9), 0u);
  EXPECT_EQ(schedule.At(10), 2u);
  schedule.Follow(Switch(2, 2, 1, 20, true));
  EXPECT_EQ(schedule.At(9), 0u);
  EXPECT_EQ(schedule.At(19), 2u);
  EXPECT_EQ(schedule.At(20), 1u);
  EXPECT_EQ(schedule.KnownAt(25).since, 20u);
}

TEST(CodecSchedule, ALatecomerLearnsTheSwitchesBefore) {
  CodecSchedule schedule;
  schedule.Follow(Switch(7, 3, 1, 50, true));
  EXPECT_EQ(schedule.At(49), 3u);
  EXPECT_EQ(schedule.At(50), 1u);
}

TEST(CodecSchedule, ManySwitchesAreNotAllKept) {
  CodecSchedule schedule;
  for (std::uint32_t i = 1; i <= 100; ++i) schedule.Follow(Switch(i, i - 1, i, 10 * i, true));
  EXPECT_EQ(schedule.At(1000), 100u);
  EXPECT_EQ(schedule.At(995), 99u);
  EXPECT_EQ(schedule.At(941), 94u);
}

}  // namespace
}  // namespace codec_schedule_test
}  // namespace leeway::compress
