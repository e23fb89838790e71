// LogLimiter limits the log lines of each kind, so that a flood of events neither fills the log nor
// hides the rest of it. Lives on a loop.
#ifndef LEEWAY_RUNTIME_LOOP_LOG_LIMITER_H_
#define LEEWAY_RUNTIME_LOOP_LOG_LIMITER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/log/log.h"
#include "runtime/loop/loop.h"

namespace leeway::runtime {

// The first `lines` of each kind in an interval are logged as they come. Further ones are counted;
// when the interval is over, the last of them is logged with "(and N more like this in the last M
// s)". Intervals are measured by the loop's clock. The destructor logs what is still due.
class LogLimiter {
 public:
  struct Limits {
    std::uint32_t lines = 5;
    absl::Duration interval = absl::Seconds(10);
  };
  explicit LogLimiter(Loop* loop) : LogLimiter(loop, Limits()) {}
  LogLimiter(Loop* loop, const Limits& limits) : loop_(loop), limits_(limits) {}
  ~LogLimiter();
  LogLimiter(const LogLimiter&) = delete;
  LogLimiter& operator=(const LogLimiter&) = delete;

  // `kind` is a fixed name in the program, never a text from a peer: all kinds are kept for good.
  void Warning(absl::string_view kind, std::string line) {
    Log(LogLevel::kWarning, kind, std::move(line));
  }
  void Info(absl::string_view kind, std::string line) {
    Log(LogLevel::kInfo, kind, std::move(line));
  }

 private:
  struct Kind {
    absl::Time begun = absl::InfinitePast();  // when the interval began
    std::uint32_t lines = 0;                  // lines logged in the interval
    std::uint64_t left_out = 0;
    std::string last;  // the newest of the lines left out
    LogLevel level = LogLevel::kInfo;
  };

  void Log(LogLevel level, absl::string_view kind, std::string line);
  void Arm();
  void SayWhatIsDue();
  static void SayLeftOut(Kind* kind, absl::Time now);

  Loop* const loop_;
  const Limits limits_;
  std::map<std::string, Kind, std::less<>> kinds_;
  TimerId timer_ = TimerId::kNone;
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_LOG_LIMITER_H_
