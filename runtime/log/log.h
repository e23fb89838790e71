// LogDebug, LogInfo, LogWarning and LogError write the log of this process: one line per call on
// standard error, with the time, the level and the name of the process. Any thread. Control
// characters are escaped, so that a line stays one line whatever a peer put into it.
#ifndef LEEWAY_RUNTIME_LOG_LOG_H_
#define LEEWAY_RUNTIME_LOG_LOG_H_

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace leeway::runtime {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };
// "debug", "info", "warning", "error", "off" (Config::log_level).
std::optional<LogLevel> ParseLogLevel(absl::string_view name);

// Lines below that level are dropped; at first, those below kInfo.
void SetLogLevel(LogLevel level);
// Shown in front of every line, e.g. "server 1".
void SetLogName(absl::string_view name);
std::string LogName();
bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, absl::string_view line);

template <class... Args>
void LogDebug(const Args&... args) {
  if (LogEnabled(LogLevel::kDebug)) LogLine(LogLevel::kDebug, absl::StrCat(args...));
}
template <class... Args>
void LogInfo(const Args&... args) {
  if (LogEnabled(LogLevel::kInfo)) LogLine(LogLevel::kInfo, absl::StrCat(args...));
}
template <class... Args>
void LogWarning(const Args&... args) {
  if (LogEnabled(LogLevel::kWarning)) LogLine(LogLevel::kWarning, absl::StrCat(args...));
}
template <class... Args>
void LogError(const Args&... args) {
  if (LogEnabled(LogLevel::kError)) LogLine(LogLevel::kError, absl::StrCat(args...));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOG_LOG_H_
