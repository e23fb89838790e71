#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/table_codec.h"

namespace leeway::compress {
namespace table_codecs_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TableSpec Spec(const std::string& codec, std::vector<std::string> codecs) {
  TableSpec spec = TableSpec::Dense("w", {100});
  spec.codec = codec;
  spec.codecs = std::move(codecs);
  return spec;
}

std::string Complaint(const TableSpec& spec) {
  return std::string(TableCodecsOf(spec).status().message());
}

TEST(TableCodecs, TheCodecComesFirst) {
  const auto codecs = TableCodecsOf(Spec("zstd", {"none", "zstd", "onebit"}));
  ASSERT_TRUE(codecs.ok()) << codecs.status();
  EXPECT_THAT(codecs->texts, ElementsAre("zstd", "none", "onebit"));
  EXPECT_TRUE(codecs->encodes());
  EXPECT_TRUE(codecs->AnyHas(&TableCodec::versions));
  EXPECT_EQ(codecs->Find(IdOf("onebit")), &codecs->choices[2]);
  EXPECT_EQ(codecs->Find(IdOf("topk")), nullptr);
  EXPECT_EQ(codecs->Find(kNoCodec), nullptr);
}

TEST(TableCodecs, AnAutomaticOneBeginsWithWhatLosesNothing) {
  const auto codecs = TableCodecsOf(Spec("auto", {"onebit", "none"}));
  ASSERT_TRUE(codecs.ok()) << codecs.status();
  EXPECT_THAT(codecs->texts, ElementsAre("none", "onebit"));
}

TEST(TableCodecs, TheSameCodecMayBeThereWithSeveralOptions) {
  const auto codecs = TableCodecsOf(Spec("topk:0.01", {"topk:0.1"}));
  ASSERT_TRUE(codecs.ok()) << codecs.status();
  EXPECT_NE(codecs->choices[0].id, codecs->choices[1].id);
}

TEST(TableCodecs, ImpossibleValuesAreRefused) {
  EXPECT_THAT(Complaint(Spec("auto", {})),
              HasSubstr("codec auto chooses from codecs, which is empty"));
  EXPECT_THAT(Complaint(Spec("none", {"onebit", "zip"})), HasSubstr("no codec named 'zip'"));
  EXPECT_THAT(Complaint(Spec("none", {"topk:2"})), HasSubstr("topk"));
  EXPECT_THAT(Complaint(Spec("none", {"dgc:0.01"})), HasSubstr("cannot be one of several"));
  EXPECT_THAT(Complaint(Spec("none", {"onebit", "onebit"})),
              HasSubstr("codec onebit is named twice"));
  TableSpec spec = Spec("none", {"zstd"});
  spec.error_feedback = ErrorFeedback::kBoth;
  EXPECT_THAT(Complaint(spec), HasSubstr("lossless codecs alone"));
  spec.codecs.push_back("onebit");
  EXPECT_TRUE(TableCodecsOf(spec).ok());
}

}  // namespace
}  // namespace table_codecs_test
}  // namespace leeway::compress
