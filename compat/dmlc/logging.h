// The macros LOG, CHECK and their kin, as programs written for ps-lite use them. Lines go to
// standard error: "[12:34:56] file.cc:12: text". Any thread; a line is written at once.
#ifndef DMLC_LOGGING_H_
#define DMLC_LOGGING_H_

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "dmlc/base.h"

namespace dmlc {

// Thrown by LOG(FATAL) and by a CHECK that fails, unless DMLC_LOG_FATAL_THROW is 0.
struct Error : public std::runtime_error {
  explicit Error(const std::string& what) : std::runtime_error(what) {}
};

inline void InitLogging(const char*) {}

class DateLogger {
 public:
  // The time of day: "12:34:56".
  const char* HumanDate() {
    const std::time_t now = std::time(nullptr);
    std::tm parts;
    localtime_r(&now, &parts);
    std::strftime(text_, sizeof(text_), "%H:%M:%S", &parts);
    return text_;
  }

 private:
  char text_[9];
};

// One line of the log; written when it is destroyed.
class LogMessage {
 public:
  LogMessage(const char* file, int line) {
    stream_ << "[" << DateLogger().HumanDate() << "] " << file << ":" << line << ": ";
  }
  ~LogMessage() {
    stream_ << "\n";
    std::cerr << stream_.str() << std::flush;
  }
  LogMessage(const LogMessage&) = delete;
  LogMessage& operator=(const LogMessage&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// The last line of a log: throws Error, or ends the process, when it is destroyed.
class LogMessageFatal {
 public:
  LogMessageFatal(const char* file, int line) {
    stream_ << "[" << DateLogger().HumanDate() << "] " << file << ":" << line << ": ";
  }
  ~LogMessageFatal() noexcept(false) {
    std::cerr << stream_.str() << "\n" << std::flush;
#if DMLC_LOG_FATAL_THROW
    throw Error(stream_.str());
#else
    std::abort();
#endif
  }
  LogMessageFatal(const LogMessageFatal&) = delete;
  LogMessageFatal& operator=(const LogMessageFatal&) = delete;
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Makes a statement of a stream, for macros whose other branch is void.
class LogMessageVoidify {
 public:
  void operator&(std::ostream&) {}
};

template <class T>
T* CheckNotNull(T* pointer, const char* file, int line, const char* text) {
  if (pointer == nullptr) {
    LogMessageFatal(file, line).stream() << "Check failed: " << text << " is not null ";
  }
  return pointer;
}

}  // namespace dmlc

#define LOG_INFO dmlc::LogMessage(__FILE__, __LINE__)
#define LOG_WARNING LOG_INFO
#define LOG_ERROR LOG_INFO
#define LOG_FATAL dmlc::LogMessageFatal(__FILE__, __LINE__)
#define LOG_QFATAL LOG_FATAL
#define LOG(severity) LOG_##severity.stream()
#define LG LOG_INFO.stream()
#define VLOG(level) LOG_INFO.stream()
#define LOG_IF(severity, condition) \
  !(condition) ? (void)0 : dmlc::LogMessageVoidify() & LOG(severity)
#define LOG_EVERY_N(severity, n) LOG(severity)

#define CHECK(condition) \
  if (condition) {       \
  } else                 \
    LOG_FATAL.stream() << "Check failed: " #condition << ' '
#define CHECK_EQ(a, b) CHECK((a) == (b))
#define CHECK_NE(a, b) CHECK((a) != (b))
#define CHECK_LT(a, b) CHECK((a) < (b))
#define CHECK_LE(a, b) CHECK((a) <= (b))
#define CHECK_GT(a, b) CHECK((a) > (b))
#define CHECK_GE(a, b) CHECK((a) >= (b))
#define CHECK_NOTNULL(pointer) dmlc::CheckNotNull((pointer), __FILE__, __LINE__, #pointer)

#ifdef NDEBUG
#define DCHECK(condition) \
  while (false) CHECK(condition)
#define LOG_DFATAL LOG_ERROR
#define DFATAL ERROR
#define DLOG(severity) true ? (void)0 : dmlc::LogMessageVoidify() & LOG(severity)
#define DLOG_IF(severity, condition) \
  (true || !(condition)) ? (void)0 : dmlc::LogMessageVoidify() & LOG(severity)
#else
#define DCHECK(condition) CHECK(condition)
#define LOG_DFATAL LOG_FATAL
#define DFATAL FATAL
#define DLOG(severity) LOG(severity)
#define DLOG_IF(severity, condition) LOG_IF(severity, condition)
#endif
#define DCHECK_EQ(a, b) DCHECK((a) == (b))
#define DCHECK_NE(a, b) DCHECK((a) != (b))
#define DCHECK_LT(a, b) DCHECK((a) < (b))
#define DCHECK_LE(a, b) DCHECK((a) <= (b))
#define DCHECK_GT(a, b) DCHECK((a) > (b))
#define DCHECK_GE(a, b) DCHECK((a) >= (b))

#endif  // DMLC_LOGGING_H_
