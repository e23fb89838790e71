#include "proto/tables/table_difference.h"

#include <algorithm>
#include <set>

#include "proto/tables/table_texts.h"

namespace leeway::proto {
namespace {

constexpr bool kLive = false;  // does not shape the data

struct Field {
  std::string name;
  std::string text;
  bool shapes_data = true;
};

// All but the updater's hyper-parameters.
std::vector<Field> FieldsOf(const TableSpec& spec) {
  return {{"name", Quoted(spec.name)},
          {"kind", Text(kKinds, static_cast<unsigned>(spec.kind))},
          {"dtype", std::string(Name(spec.dtype))},
          {"shape", absl::StrCat("[", absl::StrJoin(spec.shape, ", "), "]")},
          {"row_width", absl::StrCat(spec.row_width)},
          {"updater", Quoted(spec.updater.name)},
          {"initializer", InitializerText(spec.initializer)},
          {"consistency", spec.consistency.ToString(), kLive},
          {"aggregate", Text(kAggregates, static_cast<unsigned>(spec.aggregate))},
          {"nonfinite", Text(kNonFinites, static_cast<unsigned>(spec.nonfinite)), kLive},
          {"codec", Quoted(spec.codec)},
          {"codecs", Quoted(absl::StrJoin(spec.codecs, ";"))},
          {"error_feedback", Text(kErrorFeedbacks, static_cast<unsigned>(spec.error_feedback))}};
}

std::string ParameterText(const UpdaterSpec& updater, const std::string& name) {
  const auto found = updater.parameters.find(name);
  return found == updater.parameters.end() ? "the default" : Exact(found->second);
}

void AddParameters(const UpdaterSpec& is, const UpdaterSpec& wanted,
                   std::vector<FieldDifference>* differences) {
  std::set<std::string> names;
  for (const UpdaterSpec* const updater : {&is, &wanted}) {
    for (const auto& [name, value] : updater->parameters) names.insert(name);
  }
  for (const std::string& name : names) {
    const std::string before = ParameterText(is, name), after = ParameterText(wanted, name);
    if (before != after) {
      differences->push_back({absl::StrCat("updater.", name), before, after, kLive});
    }
  }
}

}  // namespace

std::vector<FieldDifference> DifferencesOf(const TableSpec& is, const TableSpec& wanted) {
  std::vector<FieldDifference> differences;
  const std::vector<Field> before = FieldsOf(is), after = FieldsOf(wanted);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].text != after[i].text) {
      differences.push_back({before[i].name, before[i].text, after[i].text, before[i].shapes_data});
    }
    if (before[i].name == "updater") AddParameters(is.updater, wanted.updater, &differences);
  }
  return differences;
}

std::string DescribeDifferences(const std::vector<FieldDifference>& differences) {
  return absl::StrJoin(differences, "; ", [](std::string* out, const FieldDifference& one) {
    absl::StrAppend(out, one.field, " is ", one.is, ", wanted ", one.wanted);
  });
}

absl::Status CheckShapedAlike(const TableSpec& is, const TableSpec& wanted) {
  const std::vector<FieldDifference> differences = DifferencesOf(is, wanted);
  if (std::none_of(differences.begin(), differences.end(),
                   [](const FieldDifference& one) { return one.shapes_data; })) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(
      "table ", Quoted(is.name), " exists, and differs: ", DescribeDifferences(differences)));
}

}  // namespace leeway::proto
