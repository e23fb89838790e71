#include "examples/wordnet/synsets.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::wordnet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kLicence[] = "  1 This software is free\n";
constexpr std::size_t kFirst = sizeof(kLicence) - 1;

std::uint32_t IndexOf(absl::string_view symbol) {
  for (std::uint32_t r = 0; r < Relations().size(); ++r) {
    if (Relations()[r].symbol == symbol) return r;
  }
  ADD_FAILURE() << symbol;
  return 0;
}

std::string Offset(std::size_t offset) {
  char text[16];
  std::snprintf(text, sizeof(text), "%08zu", offset);
  return text;
}

class SynsetsTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "synsets_test_" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& part, const std::string& text) const {
    std::ofstream(folder_ + "/data." + part, std::ios::binary) << text;
  }

  // The error of reading a noun file with this line after the licence, from "file:line: " on.
  std::string ErrorOf(const std::string& text) const {
    Write("noun", kLicence + text);
    const absl::Status status = LoadSynsets(folder_, {"noun"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    const std::string message(status.message());
    const std::string place = folder_ + "/data.noun:";
    EXPECT_EQ(message.substr(0, place.size()), place);
    return message.substr(std::min(message.size(), place.size()));
  }

  std::string folder_;
};

// Two nouns and an adjective's satellite; the second noun has 10 words, a hexadecimal 0a.
TEST_F(SynsetsTest, ReadsSynsetsAndPointers) {
  std::string words;
  for (int i = 0; i < 10; ++i) words += "word 0 ";
  const auto first_line = [](std::size_t second) {
    return Offset(kFirst) + " 03 n 01 entity 0 002 ~ " + Offset(second) +
           " n 0000 ! 00000000 s 0101 | a gloss | ~\n";
  };
  const std::size_t second = kFirst + first_line(0).size();
  Write("noun", kLicence + first_line(second) + Offset(second) + " 03 n 0a " + words + "001 @ " +
                    Offset(kFirst) + " n 0000 | gloss\n");
  Write("adj", "00000000 00 s 01 small 0 000 | gloss\n");
  const absl::StatusOr<Synsets> both = LoadSynsets(folder_, {"adj", "noun"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->count, 3u);
  EXPECT_THAT(both->pointers,
              testing::ElementsAre(Pointer{0, IndexOf("~"), 1}, Pointer{0, IndexOf("!"), 2},
                                   Pointer{1, IndexOf("@"), 0}));
  // Without the adjectives the pointer to one is left out.
  const absl::StatusOr<Synsets> nouns = LoadSynsets(folder_, {"noun"});
  ASSERT_TRUE(nouns.ok()) << nouns.status();
  EXPECT_EQ(nouns->count, 2u);
  EXPECT_EQ(nouns->pointers.size(), 2u);
}

TEST_F(SynsetsTest, MissingFileNamesThePackage) {
  const absl::Status status = LoadSynsets(folder_, {"verb"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(folder_ + "/data.verb"), HasSubstr("wordnet-base")));
}

TEST_F(SynsetsTest, UnknownPartsAreRefused) {
  for (const std::vector<std::string>& parts : {std::vector<std::string>{"pronoun"}, {}}) {
    EXPECT_EQ(LoadSynsets(folder_, parts).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(SynsetsTest, AFolderInsteadOfAFileIsRefused) {
  std::filesystem::create_directories(folder_ + "/data.noun");
  EXPECT_EQ(LoadSynsets(folder_, {"noun"}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(SynsetsTest, MistakesAreToldWithFileAndLine) {
  const std::string at = Offset(kFirst);
  EXPECT_THAT(
      ErrorOf(Offset(kFirst + 1) + " 03 n 01 a 0 000 | g\n"),
      AllOf(testing::StartsWith("2: "), HasSubstr("gives offset 27"), HasSubstr("byte 26")));
  EXPECT_EQ(ErrorOf("x 03 n 01 a 0 000 | g\n"), "2: has 'x' where the number offset should be");
  EXPECT_EQ(ErrorOf("\n"), "2: is cut short: offset is missing");
  EXPECT_EQ(ErrorOf(at + " 03\n"), "2: is cut short: type is missing");
  EXPECT_THAT(ErrorOf(at + " 03 v 01 a 0 000 | g\n"), HasSubstr("2: has a synset of type 'v'"));
  EXPECT_EQ(ErrorOf(at + " 03 n zz a 0 000 | g\n"), "2: has 'zz' where the number w_cnt should be");
  EXPECT_EQ(ErrorOf(at + " 03 n 02 a 0 | g\n"), "2: is cut short: word is missing");
  EXPECT_EQ(ErrorOf(at + " 03 n ffffffff a 0 | g\n"), "2: is cut short: word is missing");
  EXPECT_EQ(ErrorOf(at + " 03 n 01 a 0 | 000\n"), "2: is cut short: p_cnt is missing");
  EXPECT_EQ(ErrorOf(at + " 03 n 01 a 0 -1 | g\n"), "2: has '-1' where the number p_cnt should be");
  EXPECT_EQ(ErrorOf(at + " 03 n 01 a 0 002 @ " + at + " n 0000 | g\n"),
            "2: is cut short: pointer symbol is missing");
  EXPECT_EQ(ErrorOf(at + " 03 n 01 a 0 001 ? " + at + " n 0000 | g\n"),
            "2: has an unknown pointer symbol '?'");
  EXPECT_EQ(ErrorOf(at + " 03 n 01 a 0 001 @ " + at + " q 0000 | g\n"),
            "2: points to an unknown part of speech 'q'");
  EXPECT_EQ(ErrorOf(at + " 03 n 01 a 0 001 @ 00000007 n 0000 | g\n"),
            "2: points to offset 7 of data.noun, where no synset begins");
  EXPECT_THAT(ErrorOf(at + " 03 n 01 a 0 000 | g"), HasSubstr("2: is cut short: it does not end"));
  EXPECT_EQ(ErrorOf(""), "1: ends a file without synsets");
  EXPECT_THAT(ErrorOf(at + " 03 n 01 a 0 000 | g\n" + std::string("\0\xff", 2) + "\n"),
              testing::StartsWith("3: has '"));
}

}  // namespace
}  // namespace leeway::wordnet
