#include "tools/compare_command.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/file_system.h"
#include "tools/commands.h"

namespace leeway::tools {
namespace {

constexpr std::size_t kColumns = 4;
using Row = std::array<std::string, kColumns>;

Row RowOf(const TrainFacts& run) {
  return {run.mode, absl::StrFormat("%.2f %%", 100 * run.test_accuracy),
          absl::StrFormat("%.1f s", run.wall_time_s), absl::StrCat(run.max_staleness)};
}

absl::StatusOr<TrainFacts> Load(const std::string& path) {
  const absl::StatusOr<std::string> text = runtime::RealFileSystem()->Read(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<TrainFacts> facts = ParseTrainJson(*text);
  if (facts.ok()) return facts;
  return absl::InvalidArgumentError(absl::StrCat(path, " ", facts.status().message()));
}

}  // namespace

std::string CompareTable(const std::vector<TrainFacts>& runs) {
  std::vector<Row> rows = {{"mode", "test accuracy", "time", "largest staleness"}};
  for (const TrainFacts& run : runs) rows.push_back(RowOf(run));
  std::array<std::size_t, kColumns> widths = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const Row& row : rows) {
    absl::StrAppendFormat(&table, "%-*s", widths[0], row[0]);
    for (std::size_t i = 1; i < kColumns; ++i) {
      absl::StrAppendFormat(&table, "  %*s", widths[i], row[i]);
    }
    table += "\n";
  }
  return table;
}

int RunCompareCommand(const std::vector<std::string>& files) {
  std::vector<TrainFacts> runs;
  for (const std::string& file : files) {
    const absl::StatusOr<TrainFacts> facts = Load(file);
    if (!facts.ok()) return Complain(facts.status());
    runs.push_back(*facts);
  }
  std::fputs(CompareTable(runs).c_str(), stdout);
  return 0;
}

}  // namespace leeway::tools
