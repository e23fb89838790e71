#include "checkpoint/machine_pauses.h"

#include <pthread.h>
#include <sched.h>

#include "absl/time/clock.h"

namespace leeway::bench {

MachinePauses::MachinePauses() : thread_([this] { Run(); }) {}

MachinePauses::~MachinePauses() {
  over_ = true;
  thread_.join();
}

absl::Duration MachinePauses::Take() { return absl::Nanoseconds(total_ns_.exchange(0)); }

void MachinePauses::Run() {
  constexpr absl::Duration kSleep = absl::Milliseconds(1);
  const sched_param priority{.sched_priority = sched_get_priority_max(SCHED_FIFO)};
  if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority) != 0) {
    possible_ = false;
    return;
  }
  while (!over_) {
    const absl::Time start = absl::Now();
    absl::SleepFor(kSleep);
    const std::int64_t late = absl::ToInt64Nanoseconds(absl::Now() - start - kSleep);
    if (late > absl::ToInt64Nanoseconds(kSleep)) total_ns_ += late;
  }
}

}  // namespace leeway::bench
