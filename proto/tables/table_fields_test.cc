#include "proto/tables/table_fields.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::proto {
namespace {

using ::testing::HasSubstr;

std::string WhyNot(absl::string_view field, absl::string_view text) {
  TableSpec spec;
  const absl::Status status = SetField(&spec, field, text);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field << " " << text;
  EXPECT_EQ(spec, TableSpec()) << field << " " << text;
  return std::string(status.message());
}

TEST(TableFieldsTest, UpdatersHaveParameters) {
  EXPECT_EQ(*ParseUpdater("adam"), (UpdaterSpec{"adam", {}}));
  EXPECT_EQ(*ParseUpdater("momentum:learning_rate=1e-3,momentum=0.9"),
            (UpdaterSpec{"momentum", {{"learning_rate", 1e-3}, {"momentum", 0.9}}}));
  for (const char* text : {"sgd:", "sgd:0.1", "sgd:a=", "sgd:a=x", "sgd:a=nan", "sgd:a=inf",
                           "sgd:=1", "sgd:a=1,", "sgd:a=1e999"}) {
    EXPECT_THAT(WhyNot("updater", text), HasSubstr("is no PARAMETER=NUMBER")) << text;
  }
  EXPECT_THAT(WhyNot("updater", "sgd:a=1,a=2"), HasSubstr("has \"a\" twice"));
}

TEST(TableFieldsTest, InitializersHaveTheirNumbers) {
  EXPECT_EQ(*ParseInitializer("zeros"), Initializer::Zeros());
  EXPECT_EQ(*ParseInitializer("pushed"), Initializer::Pushed());
  EXPECT_EQ(*ParseInitializer("constant:-0.5"), Initializer::Constant(-0.5));
  EXPECT_EQ(*ParseInitializer("uniform:-0.1,0.1"), Initializer::Uniform(-0.1, 0.1, 0));
  EXPECT_EQ(*ParseInitializer("uniform:-0.1,0.1,seed=18446744073709551615"),
            Initializer::Uniform(-0.1, 0.1, ~std::uint64_t{0}));
  EXPECT_EQ(*ParseInitializer("normal:0,0.01,seed=7"), Initializer::Normal(0, 0.01, 7));
  for (const char* text :
       {"", "zeros:0", "constant", "constant:", "constant:nan", "constant:1,2", "constant:1,seed=2",
        "uniform:1", "uniform:1,2,3", "uniform:1,2,seed=-1", "uniform:1,2,seed=x",
        "uniform:1,2,seed=1,seed=2", "normal:1,inf", "ones", "other:1"}) {
    EXPECT_THAT(WhyNot("initializer", text), HasSubstr("it is zeros, constant:VALUE")) << text;
  }
}

TEST(TableFieldsTest, EveryFieldCanBeSet) {
  TableSpec spec, want;
  for (const auto& [field, text] : {std::pair{"updater", "sgd:learning_rate=0.5"},
                                    {"initializer", "constant:2"},
                                    {"consistency", "ssp:3"},
                                    {"aggregate", "mean"},
                                    {"nonfinite", "refuse"},
                                    {"codec", "topk:0.01"},
                                    {"codecs", " topk:0.01  none "},
                                    {"error_feedback", "worker"}}) {
    EXPECT_TRUE(SetField(&spec, field, text).ok()) << field;
  }
  want.updater = {"sgd", {{"learning_rate", 0.5}}};
  want.initializer = Initializer::Constant(2);
  want.consistency = Consistency::Ssp(3);
  want.aggregate = Aggregate::kMean;
  want.nonfinite = NonFinite::kRefuse;
  want.codec = "topk:0.01";
  want.codecs = {"topk:0.01", "none"};
  want.error_feedback = ErrorFeedback::kWorker;
  EXPECT_EQ(spec, want);
}

TEST(TableFieldsTest, OtherTextsShowTheFormsThatThereAre) {
  EXPECT_THAT(WhyNot("aggregate", "max"),
              HasSubstr("aggregate is \"max\": it is one of sum, mean"));
  EXPECT_THAT(WhyNot("nonfinite", ""), HasSubstr("count, refuse"));
  EXPECT_THAT(WhyNot("error_feedback", "on"), HasSubstr("auto, off, worker, server, both"));
  EXPECT_THAT(WhyNot("consistency", "ssp"), HasSubstr("ssp"));
  EXPECT_THAT(WhyNot("color", "red"), HasSubstr("a table has no field \"color\": there are"));
}

TEST(TableFieldsTest, ChangesAreParametersBoundsAndRefusals) {
  TableChange change;
  EXPECT_TRUE(AddChange(&change, "learning_rate", "0.25").ok());
  EXPECT_TRUE(AddChange(&change, "momentum", "").ok());
  EXPECT_TRUE(AddChange(&change, "consistency", "asp").ok());
  EXPECT_TRUE(AddChange(&change, "nonfinite", "refuse").ok());
  EXPECT_EQ(change.parameters.at("learning_rate"), 0.25);
  EXPECT_EQ(change.parameters.at("momentum"), std::nullopt);
  EXPECT_EQ(change.consistency, Consistency::Asp());
  EXPECT_EQ(change.nonfinite, NonFinite::kRefuse);
  EXPECT_THAT(std::string(AddChange(&change, "learning_rate", "fast").message()),
              HasSubstr("learning_rate is \"fast\": it is a number"));
}

}  // namespace
}  // namespace leeway::proto
