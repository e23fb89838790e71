#include "leeway/table_spec.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/messages/limits.h"

namespace leeway {
namespace {

using ::testing::HasSubstr;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string WhyNot(const TableSpec& spec) {
  const absl::Status status = spec.Validate();
  EXPECT_TRUE(status.ok() || status.code() == absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// A valid table of each kind, after `change`.
template <class Change>
std::string Dense(Change change) {
  TableSpec spec = TableSpec::Dense("w", {4, 5});
  change(spec);
  return WhyNot(spec);
}
template <class Change>
std::string Sparse(Change change) {
  TableSpec spec = TableSpec::Sparse("e", 8);
  change(spec);
  return WhyNot(spec);
}
template <class Change>
std::string Ragged(Change change) {
  TableSpec spec = TableSpec::Ragged("r");
  change(spec);
  return WhyNot(spec);
}
std::string Dense(DType dtype, const Initializer& initializer) {
  return Dense([&](TableSpec& s) { s.dtype = dtype, s.initializer = initializer; });
}

TEST(TableSpecTest, FactoriesMakeValidTables) {
  EXPECT_EQ(WhyNot(TableSpec::Dense("w", {784, 10})), "");
  EXPECT_EQ(WhyNot(TableSpec::Dense("w", {1}, DType::kInt64)), "");
  EXPECT_EQ(WhyNot(TableSpec::Sparse("e", 64, DType::kFloat16)), "");
  EXPECT_EQ(WhyNot(TableSpec::Ragged("r", DType::kBFloat16)), "");
}

TEST(TableSpecTest, NumElements) {
  EXPECT_EQ(TableSpec::Dense("w", {784, 10}).NumElements(), 7840u);
  EXPECT_EQ(TableSpec::Dense("w", {}).NumElements(), 0u);
  EXPECT_EQ(TableSpec::Dense("w", {3, 0}).NumElements(), 0u);
  EXPECT_EQ(TableSpec::Sparse("e", 64).NumElements(), 0u);
  // 2^64 would wrap to 0.
  EXPECT_EQ(TableSpec::Dense("w", {1ull << 32, 1ull << 32}).NumElements(), ~0ull);
  EXPECT_EQ(TableSpec::Dense("w", {1ull << 32, 1ull << 32, 0}).NumElements(), 0u);
  EXPECT_EQ(TableSpec::Dense("w", {1ull << 63, 3}).NumElements(), ~0ull);
}

TEST(TableSpecTest, Names) {
  EXPECT_EQ(Dense([](TableSpec& s) { s.name.clear(); }), "name is 0 bytes long, may be 1 to 255");
  EXPECT_EQ(Dense([](TableSpec& s) { s.name = std::string(255, 'n'); }), "");
  EXPECT_THAT(Dense([](TableSpec& s) { s.name = std::string(256, 'n'); }),
              HasSubstr("name is 256"));
  EXPECT_THAT(Dense([](TableSpec& s) { s.name = "a\nb"; }), HasSubstr("name is \"a\\nb\""));
  EXPECT_THAT(Dense([](TableSpec& s) { s.updater.name.clear(); }), HasSubstr("updater.name is 0"));
  EXPECT_EQ(Dense([](TableSpec& s) { s.updater.name = "my_own"; }), "");
}

TEST(TableSpecTest, Shapes) {
  EXPECT_EQ(Dense([](TableSpec& s) { s.shape = {}; }), "shape has 0 dimensions, may have 1 to 8");
  EXPECT_EQ(Dense([](TableSpec& s) { s.shape = std::vector<std::uint64_t>(8, 2); }), "");
  EXPECT_EQ(Dense([](TableSpec& s) { s.shape = std::vector<std::uint64_t>(9, 1); }),
            "shape has 9 dimensions, may have 1 to 8");
  EXPECT_EQ(Dense([](TableSpec& s) {
              s.shape = {2, 0, 3};
            }),
            "shape is [2, 0, 3], no dimension may be 0");
  EXPECT_EQ(Dense([](TableSpec& s) { s.shape = {proto::kTableElementsMax}; }), "");
  EXPECT_EQ(Dense([](TableSpec& s) {
              s.shape = {proto::kTableElementsMax, 2};
            }),
            "shape is [281474976710656, 2], may have 281474976710656 elements");
  EXPECT_THAT(Dense([](TableSpec& s) {
                s.shape = {1ull << 32, 1ull << 32};
              }),
              HasSubstr("may have 281474976710656 elements"));
}

TEST(TableSpecTest, FieldsOfOtherKinds) {
  EXPECT_EQ(Dense([](TableSpec& s) { s.row_width = 1; }),
            "row_width is 1, only sparse tables have one");
  EXPECT_EQ(Ragged([](TableSpec& s) { s.row_width = 2; }),
            "row_width is 2, only sparse tables have one");
  EXPECT_EQ(Sparse([](TableSpec& s) { s.shape = {3}; }),
            "shape is [3], only dense tables have one");
  EXPECT_EQ(Ragged([](TableSpec& s) { s.shape = {3}; }),
            "shape is [3], only dense tables have one");
  EXPECT_THAT(Ragged([](TableSpec& s) { s.initializer = Initializer::Constant(1); }),
              HasSubstr("initializer is not zeros"));
}

TEST(TableSpecTest, RowWidths) {
  EXPECT_EQ(Sparse([](TableSpec& s) { s.row_width = 0; }), "row_width is 0, may be 1 to 16777216");
  EXPECT_EQ(Sparse([](TableSpec& s) { s.row_width = proto::kRowWidthMax; }), "");
  EXPECT_EQ(Sparse([](TableSpec& s) { s.row_width = proto::kRowWidthMax + 1; }),
            "row_width is 16777217, may be 1 to 16777216");
}

TEST(TableSpecTest, NumbersThatAreNoEnumerators) {
  EXPECT_EQ(Dense([](TableSpec& s) { s.kind = static_cast<TableKind>(3); }),
            "kind is 3, may be 0 to 2");
  EXPECT_EQ(Dense([](TableSpec& s) { s.dtype = static_cast<DType>(kDTypeCount); }),
            "dtype is 6, may be 0 to 5");
  EXPECT_EQ(Dense([](TableSpec& s) { s.initializer.kind = static_cast<Initializer::Kind>(5); }),
            "initializer.kind is 5, may be 0 to 4");
  EXPECT_EQ(Dense([](TableSpec& s) { s.aggregate = static_cast<Aggregate>(2); }),
            "aggregate is 2, may be 0 to 1");
  EXPECT_EQ(Dense([](TableSpec& s) { s.nonfinite = static_cast<NonFinite>(2); }),
            "nonfinite is 2, may be 0 to 1");
  EXPECT_EQ(Dense([](TableSpec& s) { s.consistency.late = static_cast<Consistency::Late>(2); }),
            "consistency.late is 2, may be 0 to 1");
  EXPECT_EQ(Dense([](TableSpec& s) { s.consistency.weight = static_cast<Consistency::Weight>(6); }),
            "consistency.weight is 6, may be 0 to 5");
}

TEST(TableSpecTest, Parameters) {
  EXPECT_EQ(Dense([](TableSpec& s) { s.updater = {"sgd", {{"learning_rate", 0.1}}}; }), "");
  EXPECT_EQ(Dense([](TableSpec& s) { s.updater.parameters["rate"] = NAN; }),
            "updater.parameters[\"rate\"] is nan, may be finite");
  EXPECT_EQ(Dense([](TableSpec& s) { s.updater.parameters["rate"] = kInfinity; }),
            "updater.parameters[\"rate\"] is inf, may be finite");
  EXPECT_THAT(Dense([](TableSpec& s) { s.updater.parameters[""] = 1; }),
              HasSubstr("name of an updater's parameter is 0 bytes long"));
  EXPECT_EQ(Dense([](TableSpec& s) {
              for (int i = 0; i < 65; ++i) s.updater.parameters[absl::StrCat(i)] = i;
            }),
            "updater.parameters are 65, may be 64");
}

TEST(TableSpecTest, IntegersAreAssignedOrAdded) {
  for (const DType dtype : {DType::kInt32, DType::kInt64}) {
    for (const char* name : {"assign", "add", "my_own"}) {
      EXPECT_EQ(Dense([&](TableSpec& s) { s.dtype = dtype, s.updater.name = name; }), "");
    }
    for (const char* name :
         {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "ftrl"}) {
      EXPECT_THAT(Dense([&](TableSpec& s) { s.dtype = dtype, s.updater.name = name; }),
                  HasSubstr("only \"assign\" and \"add\" update integers"));
      EXPECT_EQ(Dense([&](TableSpec& s) { s.updater.name = name; }), "");
    }
  }
}

TEST(TableSpecTest, Constants) {
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Constant(-0.5)), "");
  EXPECT_EQ(Dense(DType::kInt32, Initializer::Pushed()), "");
  EXPECT_THAT(Sparse([](TableSpec& s) { s.initializer = Initializer::Pushed(); }),
              HasSubstr("initializer is pushed; only dense tables"));
  EXPECT_EQ(Dense(DType::kInt32, Initializer::Constant(-7)), "");
  EXPECT_EQ(Dense(DType::kInt32, Initializer::Constant(0.5)),
            "initializer.a (the constant) is 0.5, may be a whole number for int32");
  EXPECT_THAT(Dense(DType::kInt32, Initializer::Constant(3e9)), HasSubstr("is 3e+09, may be from"));
  EXPECT_THAT(Dense(DType::kInt64, Initializer::Constant(0x1p63)), HasSubstr("for int64"));
  EXPECT_THAT(Dense(DType::kFloat16, Initializer::Constant(65505)),
              HasSubstr("is 65505, may be from -65504 to 65504 for float16"));
  EXPECT_EQ(Dense(DType::kFloat16, Initializer::Constant(65504)), "");
  EXPECT_THAT(Dense(DType::kFloat32, Initializer::Constant(1e39)), HasSubstr("for float32"));
  EXPECT_THAT(Dense(DType::kBFloat16, Initializer::Constant(3.4e38)), HasSubstr("for bfloat16"));
  EXPECT_EQ(Dense(DType::kFloat64, Initializer::Constant(1e300)), "");
  EXPECT_THAT(Dense(DType::kFloat64, Initializer::Constant(kInfinity)), HasSubstr("is inf"));
  EXPECT_THAT(Dense(DType::kFloat32, Initializer::Constant(NAN)), HasSubstr("is nan"));
}

TEST(TableSpecTest, Uniform) {
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Uniform(-1, 1, 7)), "");
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Uniform(1, 1, 7)), "");
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Uniform(1, -1, 7)),
            "initializer.a (lower bound) is 1, may be at most initializer.b, -1");
  EXPECT_THAT(Dense(DType::kFloat32, Initializer::Uniform(-kInfinity, 0, 7)), HasSubstr("is -inf"));
  EXPECT_THAT(Dense(DType::kFloat32, Initializer::Uniform(0, NAN, 7)), HasSubstr("is nan"));
  EXPECT_THAT(Dense(DType::kFloat64, Initializer::Uniform(-1e308, 1e308, 7)),
              HasSubstr("which is too wide"));
  EXPECT_THAT(Dense(DType::kInt32, Initializer::Uniform(0, 9, 7)),
              HasSubstr("integer tables start as zeros or a constant"));
}

TEST(TableSpecTest, Normal) {
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Normal(0, 0.1, 7)), "");
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Normal(0, 0, 7)), "");
  EXPECT_EQ(Dense(DType::kFloat32, Initializer::Normal(0, -0.1, 7)),
            "initializer.b (standard deviation) is -0.1, may be 0 or more");
  EXPECT_THAT(Dense(DType::kFloat32, Initializer::Normal(NAN, 1, 7)), HasSubstr("is nan"));
  EXPECT_THAT(Dense(DType::kFloat32, Initializer::Normal(0, kInfinity, 7)), HasSubstr("is inf"));
  EXPECT_THAT(Dense(DType::kInt64, Initializer::Normal(0, 1, 7)), HasSubstr("dtype int64"));
}

TEST(TableSpecTest, InitializersKeepWhatTheyDoNotUseAt0) {
  using Kind = Initializer::Kind;
  EXPECT_THAT(Dense(DType::kFloat32, {Kind::kZeros, 1, 0, 0}), HasSubstr("initializer.a is 1"));
  EXPECT_THAT(Dense(DType::kFloat32, {Kind::kZeros, 0, 1, 0}), HasSubstr("initializer.b is 1"));
  EXPECT_THAT(Dense(DType::kFloat32, {Kind::kZeros, 0, 0, 1}), HasSubstr("initializer.seed is 1"));
  EXPECT_THAT(Dense(DType::kFloat32, {Kind::kZeros, 0, NAN, 0}), HasSubstr("initializer.b is nan"));
  EXPECT_THAT(Dense(DType::kFloat32, {Kind::kConstant, 1, 1, 0}), HasSubstr("initializer.b is 1"));
  EXPECT_THAT(Dense(DType::kFloat32, {Kind::kConstant, 1, 0, 1}),
              HasSubstr("initializer.seed is 1"));
}

TEST(TableSpecTest, ConsistenciesThatDoNotGoTogetherWithATable) {
  const auto with = [](const char* consistency, auto change) {
    return Dense([&](TableSpec& s) {
      s.consistency = Consistency::Parse(consistency).value();
      change(s);
    });
  };
  const auto nothing = [](TableSpec&) {};
  for (const char* fits : {"backup:2/3,drop", "softsync:4", "fedbuff:3", "asp,weight=1/tau"}) {
    EXPECT_EQ(with(fits, nothing), "");
    EXPECT_EQ(with(fits,
                   [](TableSpec& s) {
                     s.updater = {"assign", {}};
                   }),
              absl::StrCat("consistency is ", fits,
                           " and updater \"assign\"; values that replace others are not added up "
                           "or weighted"));
  }
  EXPECT_THAT(with("softsync:4",
                   [](TableSpec& s) {
                     s = TableSpec::Ragged("r", DType::kFloat32),
                     s.consistency = Consistency::Softsync(4);
                   }),
              HasSubstr("kind ragged"));
  EXPECT_THAT(with("asp,weight=1/tau",
                   [](TableSpec& s) {
                     s.dtype = DType::kInt32;
                     s.updater = {"add", {}};
                   }),
              HasSubstr("dtype int32"));
  EXPECT_EQ(Dense([](TableSpec& s) { s.consistency.count = 3; }),
            "consistency.count is 3, may be 0 for bsp, ssp and asp");
  EXPECT_THAT(Dense([](TableSpec& s) { s.codec.clear(); }), HasSubstr("codec is 0 bytes long"));
}

TEST(TableSpecTest, Means) {
  const auto mean = [](Consistency consistency, DType dtype) {
    return Dense([&](TableSpec& s) {
      s.aggregate = Aggregate::kMean;
      s.consistency = consistency;
      s.dtype = dtype;
    });
  };
  EXPECT_EQ(mean(Consistency::Bsp(), DType::kFloat32), "");
  EXPECT_EQ(mean(Consistency::Ssp(3), DType::kFloat32),
            "aggregate is mean and consistency ssp:3; only bsp, backup, softsync and fedbuff apply "
            "several pushes at once");
  EXPECT_EQ(mean(Consistency::Softsync(4), DType::kFloat32), "");
  EXPECT_THAT(mean(Consistency::Asp(), DType::kFloat32), HasSubstr("consistency asp"));
  EXPECT_EQ(mean(Consistency::Bsp(), DType::kInt32),
            "aggregate is mean and dtype int32; integers have no mean");
}

TEST(TableSpecTest, TextShowsEveryField) {
  TableSpec spec = TableSpec::Dense("w\n", {784, 10}, DType::kFloat16);
  spec.updater = {"sgd", {{"decay", 1e-9}, {"learning_rate", 0.1}}};
  spec.initializer = Initializer::Normal(0, 0.25, 42);
  EXPECT_EQ(spec.ToString(),
            "table \"w\\n\": dense float16 [784, 10], updater \"sgd\" {\"decay\": 1e-09, "
            "\"learning_rate\": 0.1}, initializer normal(0, 0.25, seed 42), consistency bsp, "
            "aggregate sum, nonfinite count, codec \"none\", "
            "error_feedback auto");
  EXPECT_EQ(TableSpec::Sparse("e", 8).ToString(),
            "table \"e\": sparse float32 row_width 8, updater \"add\" {}, initializer zeros, "
            "consistency bsp, aggregate sum, nonfinite count, "
            "codec \"none\", error_feedback auto");
}

// Tables that differ must have different texts, or an error that shows both would show no
// difference.
TEST(TableSpecTest, TextTellsTablesApart) {
  const TableSpec base = TableSpec::Sparse("e", 8);
  const std::vector<void (*)(TableSpec&)> changes = {
      [](TableSpec& s) { s.name = "other"; },
      [](TableSpec& s) { s.kind = TableKind::kRagged; },
      [](TableSpec& s) { s.dtype = DType::kInt64; },
      [](TableSpec& s) { s.row_width = 9; },
      [](TableSpec& s) { s.updater.name = "sgd"; },
      [](TableSpec& s) { s.updater.parameters["x"] = 0.1; },
      [](TableSpec& s) { s.updater.parameters["x"] = std::nextafter(0.1, 1); },
      [](TableSpec& s) { s.initializer = Initializer::Constant(0); },
      [](TableSpec& s) { s.initializer = Initializer::Uniform(0, 1, 1); },
      [](TableSpec& s) { s.initializer = Initializer::Uniform(0, 1, 2); },
      [](TableSpec& s) { s.consistency = Consistency::Ssp(1); },
      [](TableSpec& s) { s.consistency = Consistency::Backup(2, 3); },
      [](TableSpec& s) { s.consistency.late = Consistency::Late::kDrop; },
      [](TableSpec& s) { s.consistency.weight = Consistency::Weight::kInverse; },
      [](TableSpec& s) { s.aggregate = Aggregate::kMean; },
      [](TableSpec& s) { s.nonfinite = NonFinite::kRefuse; },
      [](TableSpec& s) { s.codec = "topk"; },
      [](TableSpec& s) { s.error_feedback = ErrorFeedback::kWorker; },
  };
  std::vector<std::string> texts = {base.ToString()};
  for (const auto change : changes) {
    TableSpec spec = base;
    change(spec);
    EXPECT_THAT(texts, ::testing::Not(::testing::Contains(spec.ToString())));
    texts.push_back(spec.ToString());
  }
}

}  // namespace
}  // namespace leeway
