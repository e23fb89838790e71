// These functions compute the pauses between attempts: each is twice the last, up to a limit, and
// is lengthened by a random part (jitter).
#ifndef LEEWAY_RUNTIME_LOOP_BACKOFF_H_
#define LEEWAY_RUNTIME_LOOP_BACKOFF_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "runtime/loop/loop.h"

namespace leeway::runtime {

// The first pause of a request: LEEWAY_RESEND_INTERVAL_MS.
inline absl::Duration ResendInterval(const Config& config) {
  return std::max(config.resend_interval, absl::Milliseconds(1));
}

// The pause after one of `pause`.
inline absl::Duration NextPause(absl::Duration pause, absl::Duration max) {
  return std::min(pause + pause, max);
}

// The pause of a request after one of `delay`, at most 4 intervals: long enough not to burden a
// slow peer, short enough for a dozen attempts within a usual deadline even where every other
// message is lost.
inline absl::Duration NextResendDelay(absl::Duration delay, absl::Duration interval) {
  return NextPause(delay, 4 * interval);
}

// `delay` and a random part of up to a quarter of it, so that nodes that wait for the same thing do
// not all ask at once. Computed in whole nanoseconds, because a worker needs it for each request
// and products of absl::Duration are slow.
inline absl::Duration Jittered(absl::Duration delay, Loop* loop) {
  const std::int64_t step_ns = absl::ToInt64Nanoseconds(delay) / 4096;
  return delay + absl::Nanoseconds(step_ns * static_cast<std::int64_t>(loop->Random() % 1024));
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_BACKOFF_H_
