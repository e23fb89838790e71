// The event loop: the seam through which a role gets time, timers and calls from elsewhere.
//
// A role is a set of objects that live on one loop and are touched by nothing else, so they need
// no locks. In production a loop is a thread (real_loop.h); in the simulator all
// loops are turns of one seeded thread on virtual time (sim_world.h).
#ifndef LEEWAY_RUNTIME_LOOP_LOOP_H_
#define LEEWAY_RUNTIME_LOOP_LOOP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace leeway::runtime {

using Task = absl::AnyInvocable<void()>;
enum class TimerId : std::uint64_t { kNone = 0 };

// News that lie in memory, where a busy_poll is cheaper than a call to the system. For a thread
// that is about to sleep and holds no lock, so: any thread, and it may outlive its source.
class BusyPollSource {
 public:
  virtual ~BusyPollSource() = default;
  // Whether Poll would find something now. Called in a tight loop.
  virtual bool Ready() const = 0;
  // Around a sleep: in between, news make the source's fd readable. What came before BeginSleep may
  // not have, so whoever sleeps asks Ready once more.
  virtual void BeginSleep() = 0;
  virtual void EndSleep() = 0;
};

// Something outside that makes work for a real loop, e.g. a socket.
class Source {
 public:
  virtual ~Source() = default;
  // Readable when Poll may have something to do. Constant for the source's life.
  virtual int fd() const = 0;
  // Handles what is ready without blocking, up to some fair share; true if it did anything.
  // The loop sleeps on fd() only after Poll has returned false, so edge-triggered fds are fine.
  virtual bool Poll() = 0;
  // Null: only the fd tells.
  virtual std::shared_ptr<BusyPollSource> busy_poll() { return nullptr; }
};

class Loop {
 public:
  virtual ~Loop() = default;

  // Monotonic; only differences mean anything. Any thread.
  virtual absl::Time Now() const = 0;

  // Runs `task` on the loop, after everything posted before it. Any thread. A task posted to a
  // loop that has stopped is destroyed without being run.
  virtual void Post(Task task) = 0;

  // The rest: only on the loop.

  // Runs `task` once, not earlier than `delay` from now (never within this call).
  virtual TimerId After(absl::Duration delay, Task task) = 0;
  // False if it has run, was cancelled, or is kNone.
  virtual bool Cancel(TimerId timer) = 0;

  // Runs `task` soon, before the loop next sleeps. It wakes nobody, so it costs next to nothing.
  virtual void BeforeSleep(Task task) { Post(std::move(task)); }

  // A seeded stream: what a loop draws is the same in every run of a simulation.
  virtual std::uint64_t Random() = 0;

  // Real loops only; a simulated loop has no file descriptors and ignores them.
  virtual void AddSource(Source* source) = 0;
  virtual void RemoveSource(Source* source) = 0;
};

// A loop and what turns it. Destroying it stops the loop (from any other thread) and waits for it.
class LoopRunner {
 public:
  virtual ~LoopRunner() = default;
  virtual Loop* loop() = 0;
  // Asks the loop to stop after the task it is in. Any thread, the loop's own included.
  virtual void Stop() = 0;
  // Waits until it has stopped. Not from the loop itself; a simulated loop returns at once.
  virtual void Join() = 0;
};

class FileSystem;

// What one process gets from the world it runs in.
class Host {
 public:
  virtual ~Host() = default;
  virtual std::unique_ptr<LoopRunner> Spawn(const std::string& name) = 0;
  // For work that nobody waits for: it gives way to all others that want the processor.
  virtual std::unique_ptr<LoopRunner> SpawnInBackground(const std::string& name) {
    return Spawn(name);
  }
  virtual FileSystem* files() = 0;
  virtual std::uint64_t Random() = 0;  // for incarnations and the like; any thread
  // What a calendar says, for people to read; never for measuring. Any thread.
  virtual absl::Time WallTime() = 0;
  // Memory of this process that is in RAM (RSS); 0: not known. Any thread.
  virtual std::uint64_t ResidentBytes() { return 0; }
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_LOOP_H_
