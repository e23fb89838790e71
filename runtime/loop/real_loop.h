// RealLoop is a loop on the operating system's clock and file descriptors.
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

// A RealLoop can be run in two ways.
//   Run():    one thread owns the loop until Stop().
//   by hand:  several threads share it under a lock of their own: with the lock held, call
//             RunReady() and PrepareWait(); with the lock released, Wait(). This is how a worker's
//             waiting threads run the library themselves (worker/client/loop_driver.h). A thread
//             that stops running it while RunReady() returns true, or that used a source otherwise
//             than through the loop, calls Wake() for the thread that sleeps.
class RealLoop final : public Loop {
 public:
  // `busy_poll`: the longest time to poll before blocking (runtime/loop/adaptive_busy_poll.h).
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

  // Runs one round: the BeforeSleep tasks, the posted tasks, the due timers and the ready sources.
  // True if there was anything to do besides the BeforeSleep tasks, or if some of these are left.
  bool RunReady();
  // A WaitSet is what a thread sleeps on; it is valid until the next call on the loop. `until` is
  // in the past unless the last round found nothing to do. So every source is polled once more
  // after everything that may have consumed its fd's edge, before a thread sleeps on that fd.
  struct WaitSet {
    std::vector<pollfd> fds;  // the first is the one that Wake() makes readable
    std::vector<std::shared_ptr<BusyPollSource>> busy_polls;
    absl::Time until = absl::InfiniteFuture();
    WakeSignal* signal = nullptr;
    AdaptiveBusyPoll* pace = nullptr;
  };
  WaitSet PrepareWait(absl::Time until) const;
  // Sleeps until something may be ready or until `set.until`. Needs no lock. Wake() ends it. Before
  // it sleeps it polls busy_polls, or else the descriptors, if that has paid lately
  // (runtime/loop/adaptive_busy_poll.h).
  static void Wait(const WaitSet& set);
  // Sleeps on several loops at once, without polling.
  static void WaitForAny(std::span<const WaitSet> sets);
  void Wake();  // any thread

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The host of this machine: threads, files and the system's entropy. `busy_poll`: of its loops.
std::unique_ptr<Host> NewRealHost(absl::Duration busy_poll = absl::Microseconds(100));

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_REAL_LOOP_H_
