#include "benchmarks/lab/results/folder.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/lab/results/csv.h"
#include "benchmarks/lab/results/report.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"
#include "runtime/files/file_system.h"

namespace leeway::lab {
absl::Status WriteFile(const std::string& path, const std::string& text) {
  return runtime::WriteFileAtomically(runtime::RealFileSystem(), path, text);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

absl::StatusOr<ResultFolder> ResultFolder::Make(const std::string& path) {
  LEEWAY_RETURN_IF_ERROR(runtime::RealFileSystem()->CreateDirectories(path + "/runs"));
  return ResultFolder(path);
}

absl::StatusOr<ResultFolder> ResultFolder::Open(const std::string& path) {
  ResultFolder folder(path);
  LEEWAY_RETURN_IF_ERROR(folder.ExperimentText().status());
  return folder;
}

std::string ResultFolder::FileOf(const RunPlan& plan) const {
  const std::uint64_t hash = runtime::StableHash(ToJson(plan).dump());
  return absl::StrCat(path_, "/runs/", absl::Hex(hash, absl::kZeroPad16), ".json");
}

absl::Status ResultFolder::KeepExperiment(const std::string& text) const {
  return WriteFile(path_ + "/experiment.toml", text);
}

absl::StatusOr<std::string> ResultFolder::ExperimentText() const {
  return ReadFile(path_ + "/experiment.toml");
}

std::optional<RunResult> ResultFolder::Load(const RunPlan& plan) const {
  const absl::StatusOr<std::string> text = ReadFile(FileOf(plan));
  if (!text.ok()) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  absl::StatusOr<RunResult> result = ResultFromJson(json);
  if (!result.ok() || !result->error.empty() || !(result->plan == plan)) return std::nullopt;
  return *std::move(result);
}

absl::Status ResultFolder::Save(const RunResult& result) const {
  return WriteFile(FileOf(result.plan), ToJson(result).dump() + "\n");
}

std::vector<RunResult> ResultFolder::LoadAll(const Experiment& experiment) const {
  std::vector<RunResult> results;
  for (const RunPlan& plan : experiment.runs) {
    if (auto result = Load(plan)) results.push_back(*std::move(result));
  }
  return results;
}

absl::Status ResultFolder::Summarise(const Experiment& experiment,
                                     const std::vector<RunResult>& results) const {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RunResult& result : results) json.push_back(ToJson(result));
  LEEWAY_RETURN_IF_ERROR(WriteFile(path_ + "/results.json", json.dump() + "\n"));
  LEEWAY_RETURN_IF_ERROR(WriteFile(path_ + "/results.csv", CsvOf(experiment, results)));
  return WriteFile(path_ + "/report.html", ReportOf(experiment, results));
}

}  // namespace leeway::lab
