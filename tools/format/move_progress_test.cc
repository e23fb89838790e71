#include "tools/format/move_progress.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

std::string Status(int first, int second, int joining) {
  return absl::StrCat(R"({"shards": {"filling": )", joining,
                      R"(, "servers": [{"rank": 0, "heads": )", first,
                      R"(, "replicas": 0}, {"rank": 1, "heads": 0, "replicas": )", second, "}]}}");
}

TEST(MoveProgress, ADrainIsDoneWhenNothingIsLeft) {
  MoveProgress progress = MoveProgress::OfDrain(1);
  ASSERT_TRUE(progress.Take(Status(10, 40, 8)));
  EXPECT_EQ(progress.part(), 0);
  EXPECT_EQ(progress.text(), "40 shards left on server 1, 8 on their way");
  ASSERT_TRUE(progress.Take(Status(40, 10, 8)));
  EXPECT_EQ(progress.part(), 0.75);
  ASSERT_TRUE(progress.Take(Status(50, 0, 0)));
  EXPECT_EQ(progress.part(), 1);
}

TEST(MoveProgress, ARebalanceIsDoneWhenAllAreAlike) {
  MoveProgress progress = MoveProgress::OfRebalance();
  ASSERT_TRUE(progress.Take(Status(40, 0, 0)));
  ASSERT_TRUE(progress.Take(Status(30, 10, 2)));
  EXPECT_EQ(progress.part(), 0.5);
  EXPECT_EQ(progress.text(), "2 shards on their way; servers have 10 to 30");
}

TEST(MoveProgress, TextThatIsNoStatusSaysNothing) {
  MoveProgress progress = MoveProgress::OfRebalance();
  for (const char* text :
       {"", "{", "{}", "[]", R"({"shards": 3})", R"({"shards": {"servers": 1}})"}) {
    EXPECT_FALSE(progress.Take(text)) << text;
  }
}

}  // namespace
}  // namespace leeway::tools
