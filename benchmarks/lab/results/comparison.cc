#include "benchmarks/lab/results/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/format/text_table.h"

namespace leeway::lab {
namespace {

using Row = std::vector<const Setting*>;  // of one label, by folder

// Those settings that all folders have, in the order of the first.
std::vector<Row> RowsOf(const std::vector<Compared>& folders) {
  std::vector<Row> rows;
  for (const Setting& setting : folders.front().findings.settings) {
    Row row;
    for (const Compared& folder : folders) {
      const auto found =
          std::ranges::find(folder.findings.settings, setting.label, &Setting::label);
      if (found != folder.findings.settings.end()) row.push_back(&*found);
    }
    if (row.size() == folders.size()) rows.push_back(std::move(row));
  }
  return rows;
}

struct Measure {
  const char* name;
  std::function<double(const Setting&)> value;
};

std::vector<Measure> MeasuresOf(const Compared& folder) {
  std::vector<Measure> measures = {{"s", [](const Setting& one) { return one.seconds.mean; }}};
  if (folder.has_target) {
    measures.push_back(
        {"s to target", [](const Setting& one) { return one.seconds_to_target.mean; }});
  }
  if (folder.has_score) {
    measures.push_back({"score", [](const Setting& one) { return one.score.mean; }});
  } else {
    measures.push_back({"loss", [](const Setting& one) { return one.loss.mean; }});
  }
  return measures;
}

std::string NumberText(double value) {
  return std::isnan(value) ? "-" : absl::StrFormat("%.4g", value);
}

// The labels of settings that have come to the target, the fastest first.
std::vector<std::string> Order(const std::vector<Row>& rows, std::size_t folder) {
  std::vector<const Setting*> settings;
  for (const Row& row : rows) {
    if (!std::isnan(row[folder]->seconds_to_target.mean)) settings.push_back(row[folder]);
  }
  std::ranges::stable_sort(settings, {},
                           [](const Setting* one) { return one->seconds_to_target.mean; });
  std::vector<std::string> labels;
  for (const Setting* setting : settings) labels.push_back(setting->label);
  return labels;
}

std::string OrderText(const std::vector<std::string>& first,
                      const std::vector<std::string>& other) {
  if (first.size() < 2 && other.size() < 2) return "";  // no order to speak of
  return absl::StrCat(" Settings come to the target in ", first == other ? "the same" : "another",
                      " order.");
}

}  // namespace

absl::StatusOr<std::string> ComparisonOf(const std::vector<Compared>& folders) {
  const std::vector<Row> rows = RowsOf(folders);
  if (rows.empty()) {
    return absl::FailedPreconditionError(
        "the folders have no finished setting in common: nothing can be compared");
  }
  const std::vector<Measure> measures = MeasuresOf(folders.front());
  std::vector<std::vector<std::string>> table = {{"setting"}};
  for (const Measure& measure : measures) {
    for (const Compared& folder : folders) {
      table[0].push_back(absl::StrCat(measure.name, " (", folder.name, ")"));
    }
  }
  for (const Row& row : rows) {
    std::vector<std::string>& cells = table.emplace_back(1, row.front()->label);
    for (const Measure& measure : measures) {
      for (const Setting* setting : row) cells.push_back(NumberText(measure.value(*setting)));
    }
  }
  std::string text = tools::TextTable(table);
  const auto say_if_other = [&](const Compared& other) {
    const Compared& first = folders.front();
    if (other.workload != first.workload) {
      absl::StrAppend(&text, other.name, " trains ", other.workload, ", ", first.name, " ",
                      first.workload, ": settings of one name are not the same. ");
    }
    if (first.has_target && (!other.has_target || other.target != first.target)) {
      absl::StrAppend(&text, other.name, " has another target than ", first.name, ". ");
    }
  };
  for (std::size_t i = 1; i < folders.size(); ++i) {
    say_if_other(folders[i]);
    const auto distance = [&](const Row& row) {
      return std::abs(row[i]->seconds.mean / row[0]->seconds.mean - 1);
    };
    const Row& farthest = *std::ranges::max_element(rows, {}, distance);
    absl::StrAppend(&text, "Runs of ", folders[i].name, " take ",
                    absl::StrFormat("%.3g", farthest[i]->seconds.mean / farthest[0]->seconds.mean),
                    " times as long as those of ", folders[0].name, " where they differ most (",
                    farthest[0]->label, ").");
    if (folders.front().has_target)
      absl::StrAppend(&text, OrderText(Order(rows, 0), Order(rows, i)));
    text += "\n";
  }
  return text;
}

}  // namespace leeway::lab
