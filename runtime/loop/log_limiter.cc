#include "runtime/loop/log_limiter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"

namespace leeway::runtime {

LogLimiter::~LogLimiter() {
  loop_->Cancel(timer_);
  for (auto& [name, kind] : kinds_) SayLeftOut(&kind, loop_->Now());
}

void LogLimiter::Log(LogLevel level, absl::string_view name, std::string line) {
  if (!LogEnabled(level)) return;
  const absl::Time now = loop_->Now();
  auto it = kinds_.find(name);
  if (it == kinds_.end()) it = kinds_.emplace(std::string(name), Kind()).first;
  Kind& kind = it->second;
  if (now - kind.begun >= limits_.interval) {
    SayLeftOut(&kind, now);
    kind.begun = now;
    kind.lines = 0;
  }
  if (kind.lines < limits_.lines) {
    ++kind.lines;
    return LogLine(level, line);
  }
  ++kind.left_out;
  kind.last = std::move(line);
  kind.level = level;
  Arm();
}

void LogLimiter::Arm() {
  if (timer_ != TimerId::kNone) return;
  timer_ = loop_->After(limits_.interval, [this] {
    timer_ = TimerId::kNone;
    SayWhatIsDue();
  });
}

void LogLimiter::SayWhatIsDue() {
  const absl::Time now = loop_->Now();
  bool more = false;
  for (auto& [name, kind] : kinds_) {
    if (now - kind.begun >= limits_.interval) {
      SayLeftOut(&kind, now);
    } else {
      more = more || kind.left_out > 0;
    }
  }
  if (more) Arm();
}

void LogLimiter::SayLeftOut(Kind* kind, absl::Time now) {
  if (kind->left_out == 0) return;
  const absl::Duration interval =
      std::max(absl::Ceil(now - kind->begun, absl::Seconds(1)), absl::Seconds(1));
  LogLine(kind->level, kind->left_out == 1 ? kind->last
                                           : absl::StrCat(kind->last, " (and ", kind->left_out - 1,
                                                          " more like this in the last ",
                                                          runtime::FormatDuration(interval), ")"));
  kind->left_out = 0;
  kind->last.clear();
}

}  // namespace leeway::runtime
