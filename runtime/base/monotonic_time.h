// The clock that every decision about time goes by. It stands for no date: it is not set back or
// forth, and differs between machines and after each boot. Any thread.
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
