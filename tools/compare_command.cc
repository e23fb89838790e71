#include "tools/compare_command.h"

#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/files/file_system.h"
#include "tools/format/text_table.h"
#include "tools/options/commands.h"

namespace leeway::tools {
namespace {

absl::StatusOr<TrainFacts> Load(const std::string& path) {
  const absl::StatusOr<std::string> text = runtime::RealFileSystem()->Read(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<TrainFacts> facts = ParseTrainJson(*text);
  if (facts.ok()) return facts;
  return absl::InvalidArgumentError(absl::StrCat(path, " ", facts.status().message()));
}

}  // namespace

std::string CompareTable(const std::vector<TrainFacts>& runs) {
  std::vector<std::vector<std::string>> rows = {
      {"mode", "test accuracy", "time", "largest staleness"}};
  for (const TrainFacts& run : runs) {
    rows.push_back({run.mode, absl::StrFormat("%.2f %%", 100 * run.test_accuracy),
                    absl::StrFormat("%.1f s", run.wall_time_s), absl::StrCat(run.max_staleness)});
  }
  return TextTable(rows);
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
