// How long to wait for an answer before asking again.
#ifndef LEEWAY_RUNTIME_LOOP_BACKOFF_H_
#define LEEWAY_RUNTIME_LOOP_BACKOFF_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/loop/loop.h"

namespace leeway::runtime {

inline absl::Duration ResendInterval(const Config& config) {
  return std::max(config.resend_interval, absl::Milliseconds(1));
}

// Doubles up to a few intervals: long enough not to burden who is slow, short enough for a dozen
// attempts within a usual deadline even where every other message is lost.
inline absl::Duration NextResendDelay(absl::Duration delay, absl::Duration interval) {
  return std::min(delay + delay, 4 * interval);
}

// Up to a quarter more, so that many do not ask at once. In whole numbers: it is asked for each
// request, and products of durations are slow.
inline absl::Duration Jittered(absl::Duration delay, Loop* loop) {
  const std::int64_t step_ns = absl::ToInt64Nanoseconds(delay) / 4096;
  return delay + absl::Nanoseconds(step_ns * static_cast<std::int64_t>(loop->Random() % 1024));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_BACKOFF_H_
