// How long a thread looks for news, in memory or at descriptors, before it sleeps.
//
// A sleep and the wake-up after it cost tens of microseconds; looking costs a core that others may
// want. So a loop looks only if its waits have been short lately, for a bounded time, and never
// where there is one core: then whoever it waits for cannot run meanwhile.
//
// Nor where others want the cores. A thread that looks uses up its share of them, and when there is
// news at last it has to wait until those who have had less have had theirs, for milliseconds; one
// that sleeps is woken at once. That others want the cores shows in how long it takes until a
// thread that lets others go first has its turn again: not once, for something always happens on a
// machine, but twice in a row.
#ifndef LEEWAY_RUNTIME_LOOP_ADAPTIVE_BUSY_POLL_H_
#define LEEWAY_RUNTIME_LOOP_ADAPTIVE_BUSY_POLL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace leeway::runtime {

// Any thread; what several of them say at once may be lost.
class AdaptiveBusyPoll {
 public:
  static constexpr absl::Duration kBusyPoll = absl::Microseconds(100);

  // `busy_poll`: how long at most (LEEWAY_BUSY_POLL_US); 0: never.
  explicit AdaptiveBusyPoll(absl::Duration busy_poll = kBusyPoll, int cores = CoresOfThisProcess())
      : spin_max_ns_(absl::ToInt64Nanoseconds(busy_poll)), cores_(cores) {}

  // How long to look before the next sleep.
  absl::Duration Limit(absl::Time now) const {
    const bool pays = usual_ns_.load(std::memory_order_relaxed) <= spin_max_ns_;
    const bool contended =
        absl::ToUnixNanos(now) < contended_until_ns_.load(std::memory_order_relaxed);
    return absl::Nanoseconds(cores_ > 1 && pays && !contended ? spin_max_ns_ : 0);
  }
  // How long it took, while looking, to let others go first.
  void SawYield(absl::Duration yield, absl::Time now) {
    if (absl::ToInt64Nanoseconds(yield) < kContendedNs) return;
    const std::int64_t now_ns = absl::ToUnixNanos(now);
    const std::int64_t last_ns = long_yield_ns_.exchange(now_ns, std::memory_order_relaxed);
    if (now_ns - last_ns > kInARowNs) return;
    contended_until_ns_.store(now_ns + kRestNs, std::memory_order_relaxed);
  }
  // How long a wait took, sleep and all.
  void Saw(absl::Duration wait) {
    const std::int64_t ns = std::min(absl::ToInt64Nanoseconds(wait), kCounted * spin_max_ns_);
    const std::int64_t usual = usual_ns_.load(std::memory_order_relaxed);
    usual_ns_.store(usual + (ns - usual) / kWeight, std::memory_order_relaxed);
  }

  static int CoresOfThisProcess();

 private:
  // A long wait ends the looking at once; some short ones bring it back.
  static constexpr std::int64_t kCounted = 8;
  static constexpr std::int64_t kWeight = 4;
  // Longer than any interrupt, shorter than a turn of a busy thread.
  static constexpr std::int64_t kContendedNs = 500'000;
  // As long as some turns of busy threads. Where nobody is busy there is about one long yield in a
  // second or two; where more are than there are cores, one in every few milliseconds.
  static constexpr std::int64_t kInARowNs = 20'000'000;
  // It costs some milliseconds to find out whether it still is so.
  static constexpr std::int64_t kRestNs = 1'000'000'000;

  const std::int64_t spin_max_ns_;
  const int cores_;
  std::atomic<std::int64_t> usual_ns_{kCounted * spin_max_ns_};
  std::atomic<std::int64_t> long_yield_ns_{-kInARowNs};
  std::atomic<std::int64_t> contended_until_ns_{0};
};

// A hint to the processor that this is a loop that waits.
inline void PauseBriefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_ADAPTIVE_BUSY_POLL_H_
