#include "compress/momentum.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "compress/registry.h"
#include "compress/table_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace momentum_test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> Stepped(const Momentum& momentum, const std::vector<float>& gradient,
                           std::vector<float>* velocity) {
  std::vector<float> pushed(gradient.size());
  momentum.Step(gradient, *velocity, pushed);
  return pushed;
}

TEST(Momentum, BothFormsByHand) {
  std::vector<float> velocity(2);
  const Momentum heavy_ball(0.5, false);
  EXPECT_THAT(Stepped(heavy_ball, {4, -8}, &velocity), ElementsAre(4, -8));
  EXPECT_THAT(Stepped(heavy_ball, {1, 0}, &velocity), ElementsAre(3, -4));
  EXPECT_THAT(velocity, ElementsAre(3, -4));
  velocity = {0, 0};
  const Momentum nesterov(0.5, true);
  EXPECT_THAT(Stepped(nesterov, {4, -8}, &velocity), ElementsAre(6, -12));
  EXPECT_THAT(velocity, ElementsAre(4, -8));
  EXPECT_THAT(Stepped(nesterov, {1, 0}, &velocity), ElementsAre(2.5, -2));
  EXPECT_THAT(velocity, ElementsAre(3, -4));
}

TEST(Momentum, NothingGoesBeyondTheLargestNumber) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::vector<float> velocity(1);
  const Momentum nesterov(0.9f, true);
  for (int step = 0; step < 3; ++step) {
    EXPECT_THAT(Stepped(nesterov, {kLargest}, &velocity), Each(kLargest));
    EXPECT_THAT(velocity, Each(kLargest));
  }
}

TEST(Momentum, IsAnOptionOfEveryLossyCodec) {
  for (const std::string text :
       {"onebit,momentum=0.75", "topk:0.01,momentum=0.75", "qsgd:bits=4,momentum=0.75",
        "fp16,momentum=0.75", "sketch:momentum=0.75", "powersgd:2,momentum=0.75,nesterov=0"}) {
    const auto made = MakeCodec(text);
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_TRUE(made->momentum.has_value()) << text;
    EXPECT_EQ(made->momentum->factor(), 0.75f);
    EXPECT_FALSE(made->momentum->nesterov());
  }
  EXPECT_TRUE(MakeCodec("onebit,momentum=0.9,nesterov=1")->momentum->nesterov());
  EXPECT_FALSE(MakeCodec("onebit")->momentum.has_value());
}

TEST(Momentum, ACodecWithItsOwnKeepsIt) {
  const auto made = MakeCodec("dgc:0.01,momentum=0.5");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(made->momentum.has_value());
  EXPECT_THAT(MakeCodec("dgc:0.01,momentum=0.5,nesterov=1").status().message(),
              HasSubstr("codec dgc has no option nesterov"));
  EXPECT_THAT(MakeCodec("dgc:0.01,momentum=1").status().message(),
              HasSubstr("codec dgc: momentum is 1"));
}

TEST(Momentum, MistakesAreSaidInOneLine) {
  const std::pair<const char*, const char*> wrong[] = {
      {"onebit,momentum=1", "codec onebit: momentum is 1, may be from 0 to "},
      {"onebit,momentum=-0.1", "codec onebit: momentum is -0.1"},
      {"onebit,momentum=much", "codec onebit: momentum is much"},
      {"onebit,momentum=nan", "codec onebit: momentum is nan"},
      {"onebit,momentum=0.9,nesterov=2", "codec onebit: nesterov is 2"},
      {"onebit,nesterov=1", "codec onebit: nesterov is a form of momentum, which is not given"},
      {"topk:2,momentum=0.9", "codec topk: ratio is 2"},
      {"topk:0.1,momentum=0.9,depth=3", "codec topk has no option depth"},
      {"zstd,momentum=0.9", "codec zstd loses nothing: momentum is an option of lossy codecs"},
      {"none,momentum=0.9", "codec none loses nothing"},
      {"sparse,momentum=0.9,nesterov=1", "codec sparse loses nothing"}};
  for (const auto& [text, why] : wrong) {
    const absl::Status status = MakeCodec(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(status.message(), HasSubstr(why)) << text;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
  }
}

TEST(Momentum, TablesWithoutAUseForItAreRefused) {
  TableSpec rows = TableSpec::Sparse("e", 16);
  rows.codec = "onebit,momentum=0.9";
  EXPECT_THAT(TableCodecOf(rows).status().message(),
              HasSubstr("table 'e': codec onebit,momentum=0.9 has momentum, which rows of sparse"));
  TableSpec stored = TableSpec::Dense("w", {64});
  stored.updater = {"assign", {}};
  stored.codec = "onebit,momentum=0.9";
  stored.error_feedback = ErrorFeedback::kOff;
  EXPECT_THAT(TableCodecOf(stored).status().message(), HasSubstr("updater assign stores"));
}

TEST(Momentum, ItsStateLiesBehindTheCodecs) {
  TableSpec spec = TableSpec::Dense("w", {8, 8});
  spec.codec = "powersgd:2,momentum=0.9";
  const auto codec = TableCodecOf(spec);
  ASSERT_TRUE(codec.ok()) << codec.status();
  const CodecShape shape = BlockShape(spec, *codec, 64);
  EXPECT_GT(codec->codec->StateElements(shape), 0);
  EXPECT_EQ(codec->WorkerStateElements(shape), codec->codec->StateElements(shape) + 64);
}

}  // namespace
}  // namespace momentum_test
}  // namespace leeway::compress
