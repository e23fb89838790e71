// FormatDuration writes a duration as it is shown in errors and log lines.
#ifndef LEEWAY_RUNTIME_BASE_FORMAT_DURATION_H_
#define LEEWAY_RUNTIME_BASE_FORMAT_DURATION_H_

#include <string>

#include "absl/time/time.h"

namespace leeway::runtime {

// Rounded to microseconds below a millisecond, to milliseconds below a second, and to tenths of a
// second above: "35ms", "4.9s".
inline std::string FormatDuration(absl::Duration duration) {
  const absl::Duration unit = duration < absl::Milliseconds(1) ? absl::Microseconds(1)
                              : duration < absl::Seconds(1)    ? absl::Milliseconds(1)
                                                               : absl::Milliseconds(100);
  return absl::FormatDuration(absl::Floor(duration + unit / 2, unit));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_FORMAT_DURATION_H_
