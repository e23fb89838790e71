// Pauses between attempts: each is twice the last, up to a limit, and is lengthened by chance.
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

inline absl::Duration NextPause(absl::Duration pause, absl::Duration max) {
  return std::min(pause + pause, max);
}

// Four intervals are the limit: long enough not to burden a slow peer, short enough for a dozen
// attempts within a usual deadline even where every other message is lost.
inline absl::Duration NextResendDelay(absl::Duration delay, absl::Duration interval) {
  return NextPause(delay, 4 * interval);
}

// `delay` and up to a quarter more, so that nodes that wait for the same thing do not all ask at
// once. In whole numbers: a worker computes it for each request, and products of durations are
// slow.
inline absl::Duration Jittered(absl::Duration delay, Loop* loop) {
  const std::int64_t step_ns = absl::ToInt64Nanoseconds(delay) / 4096;
  return delay + absl::Nanoseconds(step_ns * static_cast<std::int64_t>(loop->Random() % 1024));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_BACKOFF_H_
