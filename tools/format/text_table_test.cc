#include "tools/format/text_table.h"

#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

TEST(TextTableTest, LinesUpCharactersNotBytes) {
  EXPECT_EQ(
      TextTable({{"name", "kind", "value"}, {"a", "plain", "±1"}, {"longer", "b", "12345678"}}, 2),
      "name    kind      value\n"
      "a       plain        ±1\n"
      "longer  b      12345678\n");
  EXPECT_EQ(TextTable({}), "");
}

}  // namespace
}  // namespace leeway::tools
