#include "benchmarks/lab/results/folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/lab/results/csv.h"
#include "benchmarks/lab/results/report.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

namespace fs = std::filesystem;

absl::Status CannotWrite(const std::string& path, const char* why) {
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", path, ": ", why));
}

}  // namespace

absl::Status WriteFile(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  std::FILE* const file = std::fopen(fresh.c_str(), "w");
  if (file == nullptr) return CannotWrite(path, std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const int error = errno;
  if (std::fclose(file) != 0 || !written) {
    unlink(fresh.c_str());
    return CannotWrite(path, std::strerror(error));
  }
  if (std::rename(fresh.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return CannotWrite(path, std::strerror(errno));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno)));
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

absl::StatusOr<ResultFolder> ResultFolder::Make(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path) / "runs", error);
  if (error) return CannotWrite(path, error.message().c_str());
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

absl::Status ResultFolder::Summarise(const Experiment& experiment) const {
  std::vector<RunResult> results;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const RunPlan& plan : experiment.runs) {
    std::optional<RunResult> result = Load(plan);
    if (!result.has_value()) continue;
    json.push_back(ToJson(*result));
    results.push_back(*std::move(result));
  }
  LEEWAY_RETURN_IF_ERROR(WriteFile(path_ + "/results.json", json.dump() + "\n"));
  LEEWAY_RETURN_IF_ERROR(WriteFile(path_ + "/results.csv", CsvOf(experiment, results)));
  return WriteFile(path_ + "/report.html", ReportOf(experiment, results));
}

}  // namespace leeway::lab
