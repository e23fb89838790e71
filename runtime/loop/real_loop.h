// A loop on the operating system's clock and file descriptors.
#ifndef LEEWAY_RUNTIME_LOOP_REAL_LOOP_H_
#define LEEWAY_RUNTIME_LOOP_REAL_LOOP_H_

#include <poll.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/loop/loop.h"

namespace leeway::runtime {

class AdaptiveBusyPoll;
class WakeSignal;

// Can be turned in two ways.
//   Run():    one thread owns the loop until Stop().
//   by hand:  several threads share it under a lock of their own: with the lock held, call
//             RunReady() and PrepareWait(); with the lock released, Wait(). This is how a worker's
//             waiting threads drive the library's progress themselves
//             (worker/client/loop_driver.h). A thread that stops turning it while RunReady()
//             returns true, or that used a source otherwise than through the loop, calls Wake() for
//             the one that sleeps.
class RealLoop final : public Loop {
 public:
  // `busy_poll`: how long a thread polls before it blocks (runtime/loop/adaptive_busy_poll.h).
  explicit RealLoop(std::uint64_t seed, absl::Duration busy_poll = absl::Microseconds(100));
  ~RealLoop() override;

  absl::Time Now() const override;
  void Post(Task task) override;
  TimerId After(absl::Duration delay, Task task) override;
  bool Cancel(TimerId timer) override;
  void BeforeSleep(Task task) override;
  std::uint64_t Random() override;
  void AddSource(Source* source) override;
  void RemoveSource(Source* source) override;

  void Run();
  void Stop();  // any thread

  // Runs what was to run before a sleep, posted tasks, due timers and ready sources, once round;
  // true if there was anything but the first of these.
  bool RunReady();
  // What to sleep on: valid until the next call on the loop. There is no sleep in it unless the
  // last round found nothing at all to do, so that a source has always been asked after
  // everything that may have used up the edge of its fd.
  struct WaitSet {
    std::vector<pollfd> fds;  // the first is what Wake() writes to
    std::vector<std::shared_ptr<BusyPollSource>> busy_polls;
    absl::Time until = absl::InfiniteFuture();
    WakeSignal* signal = nullptr;
    AdaptiveBusyPoll* pace = nullptr;
  };
  WaitSet PrepareWait(absl::Time until) const;
  // Sleeps until something may be ready or `set.until`. Needs no lock. Wake() ends it.
  // It looks at busy_polls, or else at descriptors, for a moment first, if that has paid lately
  // (runtime/loop/adaptive_busy_poll.h).
  static void Wait(const WaitSet& set);
  // On those of several loops at once.
  static void WaitForAny(std::span<const WaitSet> sets);
  void Wake();  // any thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The machine's own: threads, files, the system's entropy. `busy_poll`: of its loops.
std::unique_ptr<Host> NewRealHost(absl::Duration busy_poll = absl::Microseconds(100));

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_REAL_LOOP_H_
