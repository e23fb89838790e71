#include "runtime/log/log.h"

#include <pthread.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/escaping.h"

namespace leeway::runtime {
namespace {

std::atomic<LogLevel> minimum{LogLevel::kInfo};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

struct Output {
  Output() : logger("leeway", std::make_shared<spdlog::sinks::stderr_sink_st>()) {
    logger.set_level(spdlog::level::trace);  // LogEnabled decides
    logger.set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  }
  std::mutex mutex;
  spdlog::logger logger;  // under mutex
  std::string name;       // likewise
};

// Never destroyed: threads may log until the process is gone. fork() takes the lock first, so that
// no other thread holds it when a child gets a copy of it.
Output& TheOutput() {
  static Output* const output = [] {
    const auto unlock = [] { TheOutput().mutex.unlock(); };
    ::pthread_atfork([] { TheOutput().mutex.lock(); }, unlock, unlock);
    return new Output;
  }();
  return *output;
}

bool HasControl(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
  }
  return false;
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(absl::string_view name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  if (name == "off") return LogLevel::kOff;
  return std::nullopt;
}

void SetLogLevel(LogLevel level) { minimum.store(level, std::memory_order_relaxed); }

void SetLogName(absl::string_view name) {
  Output& output = TheOutput();
  const std::lock_guard lock(output.mutex);
  output.name = std::string(name);
}

std::string LogName() {
  Output& output = TheOutput();
  const std::lock_guard lock(output.mutex);
  return output.name;
}

bool LogEnabled(LogLevel level) {
  return level != LogLevel::kOff && level >= minimum.load(std::memory_order_relaxed);
}

void LogLine(LogLevel level, absl::string_view line) {
  Output& output = TheOutput();
  const std::lock_guard lock(output.mutex);
  std::string text;
  if (!output.name.empty()) text = absl::StrCat(output.name, ": ");
  // Control characters from a peer or a file would break the line.
  absl::StrAppend(&text, HasControl(line) ? absl::Utf8SafeCEscape(line) : std::string(line));
  output.logger.log(ToSpdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace leeway::runtime
