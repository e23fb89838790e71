#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/kernels/kernels.h"

namespace leeway::ps {
namespace {

TEST(Levels, TheBestLevelIsChosen) {
  EXPECT_THAT(LevelsHere(), testing::IsSupersetOf({Level::kScalar, Level::kBaseline}));
  EXPECT_TRUE(std::is_sorted(LevelsHere().begin(), LevelsHere().end()));
  EXPECT_EQ(ChosenLevel(), LevelsHere().back());
}

TEST(Levels, AnotherLevelCanBeChosen) {
  for (const Level level : LevelsHere()) {
    ChooseLevel(level);
    EXPECT_EQ(ChosenLevel(), level);
    EXPECT_EQ(&ChosenKernels(), &KernelsOf(level));
  }
  EXPECT_EQ(ChosenLevel(), LevelsHere().back());
}

TEST(Levels, EachHasItsOwnLoops) {
  for (const Level level : LevelsHere()) {
    for (const Level other : LevelsHere()) {
      if (level == other) continue;
      EXPECT_NE(KernelsOf(level).Sum<float>(), KernelsOf(other).Sum<float>());
      EXPECT_NE(Name(level), Name(other));
    }
  }
}

}  // namespace
}  // namespace leeway::ps
