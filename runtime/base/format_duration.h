// Durations as people want to read them in an error.
#ifndef LEEWAY_RUNTIME_BASE_FORMAT_DURATION_H_
#define LEEWAY_RUNTIME_BASE_FORMAT_DURATION_H_

#include <string>

#include "absl/time/time.h"

namespace leeway::runtime {

// Rounded to what matters: "4.9s", "35ms".
inline std::string FormatDuration(absl::Duration duration) {
  const absl::Duration unit =
      duration < absl::Seconds(1) ? absl::Milliseconds(1) : absl::Milliseconds(100);
  return absl::FormatDuration(absl::Floor(duration + unit / 2, unit));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_FORMAT_DURATION_H_
