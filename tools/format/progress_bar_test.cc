#include "tools/format/progress_bar.h"

#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

TEST(ProgressBarTest, GrowsFromNothingToFull) {
  EXPECT_EQ(BarText(0, 90, 2.3026, absl::ZeroDuration()),
            "[>                             ]   0 %  step 0/90  loss 2.303  0 s");
  EXPECT_EQ(BarText(45, 90, 0.5, absl::Seconds(61.9)),
            "[===============>              ]  50 %  step 45/90  loss 0.500  61 s");
  EXPECT_EQ(BarText(90, 90, 0, absl::Seconds(2)),
            "[==============================] 100 %  step 90/90  loss 0.000  2 s");
}

TEST(ProgressBarTest, OutsideATerminalOnlyLinesArePrinted) {
  testing::internal::CaptureStdout();
  {
    ProgressBar bar(true);
    bar.Show(1, 2, 0.5);
    bar.Print("a line");
    bar.Show(2, 2, 0.5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "a line\n");
}

}  // namespace
}  // namespace leeway::tools
