#include "compress/common/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace options_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(CodecText, IsTakenApart) {
  const auto parsed = ParseCodecText("topk:0.01,momentum=0.9");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->name, "topk");
  EXPECT_THAT(parsed->options, ElementsAre(Pair("", "0.01"), Pair("momentum", "0.9")));
  EXPECT_THAT(ParseCodecText("qsgd:bits=4")->options, ElementsAre(Pair("bits", "4")));
  EXPECT_TRUE(ParseCodecText("onebit")->options.empty());
  const auto keys_alone = ParseCodecText("onebit,momentum=0.9,nesterov=1");
  ASSERT_TRUE(keys_alone.ok()) << keys_alone.status();
  EXPECT_EQ(keys_alone->name, "onebit");
  EXPECT_THAT(keys_alone->options, ElementsAre(Pair("momentum", "0.9"), Pair("nesterov", "1")));
}

TEST(CodecText, MistakesAreSaid) {
  const std::pair<const char*, const char*> wrong[] = {{"", "has no name"},
                                                       {":4", "has no name"},
                                                       {"topk:", "ends with ':'"},
                                                       {"topk,", "ends with ','"},
                                                       {"topk,0.1", "'0.1' without a key"},
                                                       {",a=1", "has no name"},
                                                       {"topk:1,,a=2", "an empty option"},
                                                       {"topk:=2", "an empty option"},
                                                       {"topk:1,2", "'2' without a key"},
                                                       {"topk:a=1,a=2", "option 'a' twice"},
                                                       {"top\nk", "cannot be printed"}};
  for (const auto& [text, why] : wrong) {
    EXPECT_THAT(ParseCodecText(text).status().message(), HasSubstr(why)) << text;
    EXPECT_EQ(ParseCodecText(text).status().message().find('\n'), std::string::npos) << text;
  }
  // A long text is not repeated whole.
  const auto long_one = ParseCodecText(std::string(10'000, 'x')).status();
  EXPECT_THAT(long_one.message(), HasSubstr("is 10000 bytes long, may be 255"));
  EXPECT_LT(long_one.message().size(), 500u);
}

absl::Status Read(const CodecOptions& given, double* ratio, double* bits) {
  return ReadOptions(
      "c", given,
      {{.name = "", .what = "ratio", .value = ratio, .low = 0, .high = 1, .low_open = true},
       {.name = "bits", .value = bits, .low = 2, .high = 8, .whole = true}});
}

TEST(CodecOptions, AreReadWithTheirRanges) {
  double ratio = 0.5, bits = 4;
  EXPECT_TRUE(Read({{"", "1e-3"}, {"bits", "8"}}, &ratio, &bits).ok());
  EXPECT_EQ(ratio, 1e-3);
  EXPECT_EQ(bits, 8);
  EXPECT_EQ(Read({{"", "0"}}, &ratio, &bits).message(),
            "codec c: ratio is 0, may be above 0 and at most 1");
  EXPECT_EQ(Read({{"bits", "2.5"}}, &ratio, &bits).message(),
            "codec c: bits is 2.5, may be a whole number from 2 to 8");
  EXPECT_EQ(Read({{"bits", "many"}}, &ratio, &bits).message(),
            "codec c: bits is many, may be a whole number from 2 to 8");
  EXPECT_EQ(Read({{"bits", "nan"}}, &ratio, &bits).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read({{"rank", "2"}}, &ratio, &bits).message(),
            "codec c has no option rank; it has ratio, bits");
  EXPECT_EQ(ReadOptions("none", {{"", "7"}}, {}).message(),
            "codec none has no option without a key (7); it has none");
}

}  // namespace
}  // namespace options_test
}  // namespace leeway::compress
