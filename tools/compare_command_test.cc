#include "tools/compare_command.h"

#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

TEST(CompareTest, LinesUp) {
  EXPECT_EQ(CompareTable({{"bsp", 0.88125, 23.04, 0}, {"ssp:3", 0.9, 112, 3}}),
            "mode   test accuracy     time  largest staleness\n"
            "bsp          88.12 %   23.0 s                  0\n"
            "ssp:3        90.00 %  112.0 s                  3\n");
}

}  // namespace
}  // namespace leeway::tools
