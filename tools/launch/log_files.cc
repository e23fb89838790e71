#include "tools/launch/log_files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace leeway::launch {

absl::StatusOr<LogFiles> LogFiles::Open(const std::string& folder,
                                        const std::vector<ProcessSpec>& processes) {
  LogFiles logs;
  if (folder.empty()) return logs;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("--log-dir ", folder, ": ", error.message()));
  }
  for (const ProcessSpec& process : processes) {
    const std::string path =
        absl::StrCat(folder, "/", absl::StrReplaceAll(process.name, {{" ", "-"}}), ".log");
    logs.files_.emplace_back(std::fopen(path.c_str(), "we"));
    if (logs.files_.back() == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("--log-dir: cannot write ", path, ": ", std::strerror(errno)));
    }
  }
  return logs;
}

void LogFiles::Add(std::size_t index, absl::string_view line) {
  if (files_.empty()) return;
  std::FILE* const file = files_[index].get();
  std::fwrite(line.data(), 1, line.size(), file);
  std::fputc('\n', file);
  std::fflush(file);  // so that it can be read while the process runs
}

}  // namespace leeway::launch
