#include "proto/tables/text.h"

#include "gtest/gtest.h"

namespace leeway::proto {
namespace {

TEST(TextTest, CleanIsUtf8WithoutControlCharacters) {
  for (const char* text :
       {"", "plain ~!", "gr\xc3\xb6\xc3\x9f", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsClean(text, Lines::kOne)) << Quoted(text);
  }
}

TEST(TextTest, UncleanIsEverythingElse) {
  for (const char* text : {"\x01",
                           "\x1b[0m",
                           "\x7f",
                           "a\r",
                           "\x80",
                           "\xbf",
                           "\xc2",
                           "\xc2\x80",
                           "\xc2\x9f",
                           "\xc3(",
                           "\xc0\x80",
                           "\xc1\xbf",
                           "\xe0\x9f\xbf",
                           "\xe2\x82",
                           "\xe2\x28\xa1",
                           "\xed\xa0\x80",
                           "\xed\xbf\xbf",
                           "\xf0\x8f\xbf\xbf",
                           "\xf0\x90\x80",
                           "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80",
                           "\xff",
                           "ok\xfe"}) {
    EXPECT_FALSE(IsClean(text, Lines::kMany)) << Quoted(text);
  }
  EXPECT_FALSE(IsClean(absl::string_view("a\0b", 3), Lines::kMany));
}

TEST(TextTest, OnlySomeHaveSeveralLines) {
  EXPECT_FALSE(IsClean("a\nb", Lines::kOne));
  EXPECT_FALSE(IsClean("a\tb", Lines::kOne));
  EXPECT_TRUE(IsClean("a\n\tb", Lines::kMany));
}

TEST(TextTest, CutEndsWithAWholeCharacter) {
  const absl::string_view text = "ab\xc3\xb6\xe2\x82\xac\xf0\x90\x80\x80";  // 2 + 2 + 3 + 4 bytes
  const std::size_t expected[] = {0, 1, 2, 2, 4, 4, 4, 7, 7, 7, 7, 11, 11};
  for (std::size_t max = 0; max < 13; ++max) EXPECT_EQ(Cut(text, max).size(), expected[max]) << max;
}

TEST(TextTest, CutOfWhatIsNotUtf8IsAnywhere) {
  EXPECT_EQ(Cut("\x80\x80\x80\x80\x80\x80\x80", 5).size(), 5u);
  EXPECT_EQ(Cut("\x80\x80\x80", 1).size(), 1u);
}

TEST(TextTest, CleanedIsClean) {
  EXPECT_EQ(Cleaned("a\x1b\xc3\xb6\xff\n", Lines::kMany), "a?\xc3\xb6?\n");
  EXPECT_EQ(Cleaned("a\n\xe2\x82", Lines::kOne), "a???");
}

TEST(TextTest, QuotedIsOnOneLine) {
  EXPECT_EQ(Quoted("a\"b\\c\n\xff\xc3\xb6\xc2\x85"), "\"a\\\"b\\\\c\\n\\377\xc3\xb6\\302\\205\"");
}

TEST(TextTest, QuotedBrieflyIsShort) {
  EXPECT_EQ(QuotedBriefly(std::string(64, 'x')), Quoted(std::string(64, 'x')));
  EXPECT_EQ(QuotedBriefly(std::string(4000, 'x')),
            "\"" + std::string(64, 'x') + "\"… (4000 bytes)");
  EXPECT_LE(QuotedBriefly(std::string(4000, '\n')).size(), 150u);
}

TEST(TextTest, CheckNamesTheFieldAndTheBounds) {
  EXPECT_TRUE(CheckText("name", "ab", 1, 2).ok());
  EXPECT_EQ(CheckText("name", "", 1, 2).message(), "name is 0 bytes long, may be 1 to 2");
  EXPECT_EQ(CheckText("name", "abc", 1, 2).message(), "name is 3 bytes long, may be 1 to 2");
  EXPECT_EQ(CheckText("name", "\n", 1, 2).message(),
            "name is \"\\n\", may be UTF-8 without control characters");
}

}  // namespace
}  // namespace leeway::proto
