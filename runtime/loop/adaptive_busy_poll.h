// AdaptiveBusyPoll decides how long a thread polls memory and descriptors for events before it
// blocks.
//
// Blocking and waking up cost tens of microseconds; polling occupies a core. So a loop polls only
// if its waits have been short lately, for a bounded time, and never on a machine with one core,
// where the thread that it waits for could not run meanwhile.
//
// It does not poll either where other threads compete for the cores. A thread that polls uses up
// its time slice, and when an event comes it may have to wait for milliseconds until the other
// threads have had theirs; a thread that has slept is woken at once. Competition shows in how long
// sched_yield takes. A single slow yield happens on every machine; two in close succession stop the
// polling for a while.
#ifndef LEEWAY_RUNTIME_LOOP_ADAPTIVE_BUSY_POLL_H_
#define LEEWAY_RUNTIME_LOOP_ADAPTIVE_BUSY_POLL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace leeway::runtime {

// Any thread. Updates that several threads make at the same time may be lost: the result is an
// estimate.
class AdaptiveBusyPoll {
 public:
  static constexpr absl::Duration kBusyPoll = absl::Microseconds(100);

  // `busy_poll`: the longest time to poll (LEEWAY_BUSY_POLL_US); 0: never poll.
  explicit AdaptiveBusyPoll(absl::Duration busy_poll = kBusyPoll, int cores = CoresOfThisProcess())
      : spin_max_ns_(absl::ToInt64Nanoseconds(busy_poll)), cores_(cores) {}

  // How long to poll before the next sleep; 0: not at all.
  absl::Duration Limit(absl::Time now) const {
    const bool pays = usual_ns_.load(std::memory_order_relaxed) <= spin_max_ns_;
    const bool contended =
        absl::ToUnixNanos(now) < contended_until_ns_.load(std::memory_order_relaxed);
    return absl::Nanoseconds(cores_ > 1 && pays && !contended ? spin_max_ns_ : 0);
  }
  // Reports how long a sched_yield took while polling.
  void SawYield(absl::Duration yield, absl::Time now) {
    if (absl::ToInt64Nanoseconds(yield) < kContendedNs) return;
    const std::int64_t now_ns = absl::ToUnixNanos(now);
    const std::int64_t last_ns = long_yield_ns_.exchange(now_ns, std::memory_order_relaxed);
    if (now_ns - last_ns > kInARowNs) return;
    contended_until_ns_.store(now_ns + kRestNs, std::memory_order_relaxed);
  }
  // Reports how long a wait took, polling and sleep together.
  void Saw(absl::Duration wait) {
    const std::int64_t ns = std::min(absl::ToInt64Nanoseconds(wait), kCounted * spin_max_ns_);
    const std::int64_t usual = usual_ns_.load(std::memory_order_relaxed);
    usual_ns_.store(usual + (ns - usual) / kWeight, std::memory_order_relaxed);
  }

  static int CoresOfThisProcess();

 private:
  // A wait counts at most kCounted times the limit, and with the weight 1/kWeight in the moving
  // average: one long wait ends the polling, a few short ones start it again.
  static constexpr std::int64_t kCounted = 8;
  static constexpr std::int64_t kWeight = 4;
  // A yield of this length is slow: longer than an interrupt, shorter than a busy thread's time
  // slice.
  static constexpr std::int64_t kContendedNs = 500'000;
  // Two slow yields within this time are competition. It is as long as a few time slices. An idle
  // machine has a slow yield every second or so; one with more busy threads than cores has one
  // every few milliseconds.
  static constexpr std::int64_t kInARowNs = 20'000'000;
  // How long polling then stays off. Finding out that the competition goes on costs some
  // milliseconds.
  static constexpr std::int64_t kRestNs = 1'000'000'000;

  const std::int64_t spin_max_ns_;
  const int cores_;
  std::atomic<std::int64_t> usual_ns_{kCounted * spin_max_ns_};
  std::atomic<std::int64_t> long_yield_ns_{-kInARowNs};
  std::atomic<std::int64_t> contended_until_ns_{0};
};

// Tells the processor that this is a loop that waits (a pause instruction).
inline void PauseBriefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_ADAPTIVE_BUSY_POLL_H_
