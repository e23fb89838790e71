#include "proto/tables/table_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::proto {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TableSpec Spec() {
  TableSpec spec = TableSpec::Dense("w", {4, 5});
  spec.updater = {"adam", {{"learning_rate", 0.1}, {"beta1", 0.9}}};
  spec.consistency = Consistency::Ssp(3);
  return spec;
}

TEST(TableDifference, IsNoneOfEqualTables) {
  EXPECT_THAT(DifferencesOf(Spec(), Spec()), IsEmpty());
  EXPECT_TRUE(CheckShapedAlike(Spec(), Spec()).ok());
}

TEST(TableDifference, NamesOnlyWhatDiffers) {
  TableSpec other = Spec();
  other.updater.parameters = {{"learning_rate", 0.2}, {"epsilon", 1e-7}, {"beta1", 0.9}};
  other.consistency = Consistency::Asp();
  EXPECT_EQ(DescribeDifferences(DifferencesOf(Spec(), other)),
            "updater.epsilon is the default, wanted 1e-07; updater.learning_rate is 0.1, wanted "
            "0.2; consistency is ssp:3, wanted asp");
}

TEST(TableDifference, RatesConsistencyAndNonFiniteDoNotShapeTheData) {
  TableSpec other = Spec();
  other.updater.parameters["learning_rate"] = 1;
  other.nonfinite = NonFinite::kRefuse;
  for (const char* const text : {"asp", "bsp", "backup:2/3", "asp,weight=1/tau"}) {
    other.consistency = Consistency::Parse(text).value();
    EXPECT_TRUE(CheckShapedAlike(Spec(), other).ok()) << text;
  }
}

TEST(TableDifference, EverythingElseShapesTheData) {
  const auto changed = [](void (*change)(TableSpec&)) {
    TableSpec spec = Spec();
    change(spec);
    return spec;
  };
  const std::pair<const char*, TableSpec> cases[] = {
      {"name is", changed([](TableSpec& s) { s.name = "v"; })},
      {"kind is", changed([](TableSpec& s) { s.kind = TableKind::kRagged; })},
      {"dtype is", changed([](TableSpec& s) { s.dtype = DType::kFloat64; })},
      {"shape is [4, 5], wanted [4, 6]", changed([](TableSpec& s) {
         s.shape = {4, 6};
       })},
      {"row_width is", changed([](TableSpec& s) { s.row_width = 7; })},
      {"updater is", changed([](TableSpec& s) { s.updater.name = "sgd"; })},
      {"initializer is", changed([](TableSpec& s) { s.initializer = Initializer::Constant(1); })},
      {"aggregate is", changed([](TableSpec& s) { s.aggregate = Aggregate::kMean; })},
      {"codec is", changed([](TableSpec& s) { s.codec = "onebit"; })},
      {"codecs is", changed([](TableSpec& s) { s.codecs = {"onebit"}; })},
      {"error_feedback is", changed([](TableSpec& s) { s.error_feedback = ErrorFeedback::kOff; })},
  };
  for (const auto& [text, other] : cases) {
    const absl::Status status = CheckShapedAlike(Spec(), other);
    EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("beta1"))) << text;
  }
}

}  // namespace
}  // namespace leeway::proto
