#include "tools/format/format_units.h"

#include <gtest/gtest.h>

#include <limits>

namespace leeway::tools {
namespace {

TEST(FormatUnitsTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(10 << 10), "10 KiB");
  EXPECT_EQ(FormatBytes(1024.0 * 1024 - 1), "1.0 MiB") << "not 1024 KiB";
  EXPECT_EQ(FormatBytes(1.25 * (1 << 30)), "1.2 GiB");
  EXPECT_EQ(FormatBytes(1e30), "888178419700125 PiB");
  EXPECT_EQ(FormatBytes(std::numeric_limits<double>::quiet_NaN()), "?");
}

TEST(FormatUnitsTest, Counts) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(999.6), "1.0k");
  EXPECT_EQ(FormatCount(12'345), "12k");
  EXPECT_EQ(FormatCount(3'400'000), "3.4M");
}

TEST(FormatUnitsTest, Times) {
  EXPECT_EQ(FormatTime(absl::Milliseconds(999)), "0s");
  EXPECT_EQ(FormatTime(absl::Seconds(59)), "59s");
  EXPECT_EQ(FormatTime(absl::Seconds(312)), "5m 12s");
  EXPECT_EQ(FormatTime(absl::Minutes(123)), "2h 3m");
  EXPECT_EQ(FormatTime(absl::Hours(107)), "4d 11h");
  EXPECT_EQ(FormatTime(absl::Seconds(-5)), "0s");
}

}  // namespace
}  // namespace leeway::tools
