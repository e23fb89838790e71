#include "tools/compression/plan.h"

#include <set>
#include <string>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

TableSpec Table() {
  TableSpec table = TableSpec::Dense("weights", {8, 8});
  table.updater.name = "sgd";
  return table;
}

TEST(CompressionPlanTest, EachWithFeedbackAndWithoutWhereThereAreBoth) {
  const auto plan = PlanVariants("zstd; onebit;dgc:0.001;sketch", Table());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, ElementsAre(Variant{"none", ErrorFeedback::kOff},  // always
                                 Variant{"zstd", ErrorFeedback::kOff},  // lossless
                                 Variant{"onebit", ErrorFeedback::kBoth},
                                 Variant{"onebit", ErrorFeedback::kOff},
                                 Variant{"dgc:0.001", ErrorFeedback::kWorker},  // its own
                                 // No contraction.
                                 Variant{"sketch", ErrorFeedback::kOff}));
}

TEST(CompressionPlanTest, TheDefaultHasEveryCodec) {
  const auto plan = PlanVariants(kDefaultCodecs, Table());
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::set<std::string> planned;
  for (const Variant& variant : *plan) {
    planned.insert(variant.codec.substr(0, variant.codec.find(':')));
  }
  EXPECT_THAT(planned, UnorderedElementsAreArray(compress::CodecNames()));
}

TEST(CompressionPlanTest, SaysWhatIsWrong) {
  for (const auto& [codecs, why] :
       {std::pair("topk:2", "--codecs: "), std::pair("onebit;morse:3", "no codec named 'morse'"),
        std::pair("onebit:", "onebit:"), std::pair("fp16;fp16", "'fp16' is listed twice"),
        std::pair(" ; ", "names no codec")}) {
    const auto plan = PlanVariants(codecs, Table());
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << codecs;
    EXPECT_THAT(plan.status().message(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace leeway::tools
