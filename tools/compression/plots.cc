#include "tools/compression/plots.h"

#include "absl/strings/str_cat.h"
#include "tools/launch/supervisor.h"

namespace leeway::tools {
namespace {

// Debian's own, which has Debian's python3-matplotlib.
constexpr char kPython[] = "/usr/bin/python3";

}  // namespace

absl::StatusOr<std::vector<std::string>> DrawPlots(const std::string& json,
                                                   const std::string& folder) {
  launch::ProcessSpec python;
  python.name = "plots";
  python.arguments = {kPython, "-c", kPlotsProgram, json, folder};
  python.is_work = true;
  std::vector<std::string> paths;
  std::string error;  // the last line of it
  launch::SupervisorOptions options;
  options.on_line = [&](std::size_t, launch::Stream stream, absl::string_view line) {
    if (stream == launch::Stream::kOutput) {
      paths.emplace_back(line);
    } else if (!line.empty()) {
      error = std::string(line);
    }
    return true;
  };
  const launch::SupervisorResult result = launch::Supervise({python}, options);
  if (result.exit_code == 0) return paths;
  return absl::FailedPreconditionError(error.empty() ? result.failure : error);
}

}  // namespace leeway::tools
