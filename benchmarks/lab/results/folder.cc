#include "benchmarks/lab/results/folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
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
namespace {

// The title may be a file's name, which need not be UTF-8.
constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

}  // namespace

absl::Status WriteFile(const std::string& path, const std::string& text) {
  return runtime::WriteFileAtomically(runtime::RealFileSystem(), path, text);
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": it is a folder, no file"));
  }
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

std::string ResultFolder::FileOf(const RunPlan& plan) const {
  const std::uint64_t hash = runtime::StableHash(ToJson(plan).dump());
  return absl::StrCat(path_, "/runs/", absl::Hex(hash, absl::kZeroPad16), ".json");
}

absl::Status ResultFolder::KeepExperiment(const Experiment& experiment,
                                          const std::string& text) const {
  LEEWAY_RETURN_IF_ERROR(WriteFile(path_ + "/experiment.toml", text));
  nlohmann::ordered_json plans = {{"title", experiment.title}};
  plans["runs"] = nlohmann::ordered_json::array();
  for (const RunPlan& plan : experiment.runs) plans["runs"].push_back(ToJson(plan));
  return WriteFile(path_ + "/plans.json", plans.dump(-1, ' ', false, kReplace) + "\n");
}

absl::StatusOr<Experiment> ResultFolder::LoadExperiment() const {
  const std::string file = path_ + "/experiment.toml";
  LEEWAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  LEEWAY_ASSIGN_OR_RETURN(Experiment experiment, ParseExperiment(file, text, {}));
  LEEWAY_ASSIGN_OR_RETURN(const std::string plans, ReadFile(path_ + "/plans.json"));
  const nlohmann::json json = nlohmann::json::parse(plans, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("title") || !json["title"].is_string() ||
      !json.contains("runs")) {
    return absl::DataLossError(absl::StrCat(path_, "/plans.json is damaged: `run` writes it anew"));
  }
  json["title"].get_to(experiment.title);
  experiment.runs.clear();
  for (const nlohmann::json& one : json["runs"]) {
    LEEWAY_ASSIGN_OR_RETURN(experiment.runs.emplace_back(), PlanFromJson(one));
  }
  return experiment;
}

absl::StatusOr<std::unique_ptr<runtime::FileLock>> ResultFolder::Lock() const {
  auto lock = runtime::RealFileSystem()->Lock(path_ + "/lock");
  if (!absl::IsAlreadyExists(lock.status())) return lock;
  return absl::AlreadyExistsError(absl::StrCat(path_, ": another `run` is at work there"));
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
