// MonotonicNow reads the clock that all decisions about time use (CLOCK_MONOTONIC). Its values are
// no dates: they are never set back or forth, and differ between machines and between boots. Any
// thread.
#ifndef LEEWAY_RUNTIME_BASE_MONOTONIC_TIME_H_
#define LEEWAY_RUNTIME_BASE_MONOTONIC_TIME_H_

#include <time.h>

#include "absl/time/time.h"

namespace leeway::runtime {

inline absl::Time MonotonicNow() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_MONOTONIC_TIME_H_
