// The table of docs/consistency.md, "What does not go together": each consistency with each kind of
// table, as descriptions and servers decide.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/table/table.h"

namespace leeway::ps {
namespace {

struct Kind {
  const char* name;
  std::function<void(TableSpec*)> make;
};

const std::vector<Kind>& Kinds() {
  static const auto& kinds = *new std::vector<Kind>{
      {"dense", [](TableSpec*) {}},
      {"sparse", [](TableSpec* spec) { *spec = TableSpec::Sparse("t", 4); }},
      {"ragged", [](TableSpec* spec) { *spec = TableSpec::Ragged("t", DType::kFloat32); }},
      {"float16", [](TableSpec* spec) { spec->dtype = DType::kFloat16; }},
      {"integers", [](TableSpec* spec) { spec->dtype = DType::kInt64; }},
      {"`assign`", [](TableSpec* spec) { spec->updater.name = "assign"; }},
      {"mean", [](TableSpec* spec) { spec->aggregate = Aggregate::kMean; }},
      {"codec without loss", [](TableSpec* spec) { spec->codec = "zstd"; }},
      {"codec, feedback on workers",
       [](TableSpec* spec) {
         spec->codec = "onebit";
         spec->error_feedback = ErrorFeedback::kWorker;
       }},
      {"codec, feedback on servers", [](TableSpec* spec) {
         spec->codec = "onebit";
         spec->error_feedback = ErrorFeedback::kBoth;
       }}};
  return kinds;
}

constexpr const char* kConsistencies[] = {"bsp",
                                          "ssp:3",
                                          "asp",
                                          "dssp:1-8",
                                          "psp:3/8",
                                          "backup:14/16",
                                          "softsync:4",
                                          "fedbuff:10",
                                          "asp,weight=1/tau",
                                          "asp,weight=cutoff:16",
                                          "asp,dc=0.04",
                                          "asp,dc=adaptive:2/0.95"};

TableSpec SpecOf(const char* consistency, const Kind& kind) {
  TableSpec spec = TableSpec::Dense("t", {8});
  kind.make(&spec);
  spec.consistency = Consistency::Parse(consistency).value();
  return spec;
}

bool GoTogether(const char* consistency, const Kind& kind) {
  const TableSpec spec = SpecOf(consistency, kind);
  if (!spec.Validate().ok()) return false;
  const auto updater = MakeUpdater(spec);
  return updater.ok() && CheckConsistency(spec, **updater).ok();
}

std::string TableOfPairs() {
  std::string text = "| |", line = "|---|";
  for (const Kind& kind : Kinds()) {
    absl::StrAppend(&text, " ", kind.name, " |");
    line += "---|";
  }
  absl::StrAppend(&text, "\n", line, "\n");
  for (const char* const consistency : kConsistencies) {
    absl::StrAppend(&text, "| `", consistency, "` |");
    for (const Kind& kind : Kinds()) {
      text += GoTogether(consistency, kind) ? " yes |" : " no |";
    }
    text += "\n";
  }
  return text;
}

TEST(ConsistencyPairs, AreAsDocumented) {
  std::ifstream file(LEEWAY_CONSISTENCY_PAGE);
  ASSERT_TRUE(file.is_open()) << LEEWAY_CONSISTENCY_PAGE;
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(TableOfPairs()), std::string::npos)
      << LEEWAY_CONSISTENCY_PAGE << " lacks this table:\n\n"
      << TableOfPairs();
}

// A table of a checkpoint may become what it could have been created as, and nothing else.
TEST(ConsistencyPairs, HoldForATableThatIsThere) {
  for (const Kind& kind : Kinds()) {
    for (const char* const before : kConsistencies) {
      if (!GoTogether(before, kind)) continue;
      const TableSpec is = SpecOf(before, kind);
      const Table table(1, is, *MakeUpdater(is));
      for (const char* const after : kConsistencies) {
        const TableSpec wanted = SpecOf(after, kind);
        const auto updater = MakeUpdater(wanted);
        ASSERT_TRUE(updater.ok()) << updater.status();
        const bool may = wanted.Validate().ok() && table.CouldHave(wanted, **updater).ok();
        EXPECT_EQ(may, GoTogether(after, kind)) << kind.name << ": " << before << " to " << after;
      }
    }
  }
}

// Two rules of which one leaves the other nothing to do, and factors that no table can have.
TEST(ConsistencyPairs, OptionsThatDoNotGoTogetherAreRefusedForEveryTable) {
  for (const char* const consistency :
       {"bsp,weight=1/tau", "backup:14/16,weight=1/tau", "bsp,dc=0.04", "backup:14/16,dc=0.04",
        "softsync:4,dc=0.04", "fedbuff:10,dc=0.04", "asp,drop", "fedbuff:10,wait",
        "asp,weight=table:1e39", "asp,dc=1e39", "asp,dc=adaptive:2/0", "asp,dc=adaptive:2/1"}) {
    EXPECT_FALSE(Consistency::Parse(consistency).ok()) << consistency;
  }
}

}  // namespace
}  // namespace leeway::ps
