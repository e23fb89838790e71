#include <algorithm>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace {

TEST(Levels, TheBestLevelIsChosen) {
  EXPECT_THAT(LevelsHere(), testing::IsSupersetOf({Level::kScalar, Level::kBaseline}));
  EXPECT_TRUE(std::is_sorted(LevelsHere().begin(), LevelsHere().end()));
  EXPECT_EQ(&ChosenKernels(), &KernelsOf(LevelsHere().back()));
}

TEST(Levels, AnotherLevelCanBeChosen) {
  for (const Level level : LevelsHere()) {
    ChooseLevel(level);
    EXPECT_EQ(&ChosenKernels(), &KernelsOf(level));
  }
  EXPECT_EQ(&ChosenKernels(), &KernelsOf(LevelsHere().back()));
}

TEST(Levels, EachHasItsOwnLoops) {
  for (const Level level : LevelsHere()) {
    for (const Level other : LevelsHere()) {
      if (level == other) continue;
      EXPECT_NE(KernelsOf(level).sum.Of<float>(), KernelsOf(other).sum.Of<float>());
      EXPECT_NE(Name(level), Name(other));
    }
  }
}

}  // namespace
}  // namespace leeway::compress
