// Loop is an event loop: the interface through which a role gets time, timers and calls from
// elsewhere.
//
// A role is a set of objects that live on one loop and are touched by nothing else, so they need no
// locks. In production a loop is a thread (runtime/loop/real_loop.h); in the simulator all loops
// take turns on one thread and virtual time (runtime/sim/sim_world.h).
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

// Events that a thread can see in memory, where polling is cheaper than a system call. Called by a
// thread that is about to sleep and holds no lock, so: any thread, and it may outlive its source.
class BusyPollSource {
 public:
  virtual ~BusyPollSource() = default;
  // Whether Source::Poll would find something now. Called in a tight loop.
  virtual bool Ready() const = 0;
  // Called around a sleep. Between the two calls an event makes the source's fd readable. An event
  // from before BeginSleep may not have done so, so the thread asks Ready once more after
  // BeginSleep.
  virtual void BeginSleep() = 0;
  virtual void EndSleep() = 0;
};

// A Source is a descriptor that makes work for a real loop, e.g. a socket. On the loop.
class Source {
 public:
  virtual ~Source() = default;
  // Readable when Poll may have something to do. The same for the source's whole life.
  virtual int fd() const = 0;
  // Handles what is ready, without blocking and up to a fair share; true if it did anything. The
  // loop sleeps on fd() only after Poll has returned false, so edge-triggered fds are allowed.
  virtual bool Poll() = 0;
  // Null: the source is seen through its fd only.
  virtual std::shared_ptr<BusyPollSource> busy_poll() { return nullptr; }
};

class Loop {
 public:
  virtual ~Loop() = default;

  // Monotonic: only differences have a meaning. Any thread.
  virtual absl::Time Now() const = 0;

  // Runs `task` on the loop, after all tasks posted before it. Any thread. A task posted to a loop
  // that has stopped is destroyed without being run.
  virtual void Post(Task task) = 0;

  // The functions below: only on the loop.

  // Runs `task` once, at least `delay` from now, and never within this call.
  virtual TimerId After(absl::Duration delay, Task task) = 0;
  // False if the timer has run, was cancelled, or is kNone.
  virtual bool Cancel(TimerId timer) = 0;

  // Runs `task` before the loop next sleeps. It wakes no thread, so it is much cheaper than Post.
  virtual void BeforeSleep(Task task) { Post(std::move(task)); }

  // The loop's own random stream; it is the same in every simulated run with the same seed.
  virtual std::uint64_t Random() = 0;

  // Real loops only; a simulated loop has no file descriptors and ignores sources. A source
  // outlives its registration.
  virtual void AddSource(Source* source) = 0;
  virtual void RemoveSource(Source* source) = 0;
};

// A LoopRunner owns a loop and the thread that runs it. Its destructor, on any other thread, stops
// the loop and waits for it.
class LoopRunner {
 public:
  virtual ~LoopRunner() = default;
  virtual Loop* loop() = 0;
  // Asks the loop to stop after the task that it is running. Any thread, the loop's own included.
  virtual void Stop() = 0;
  // Waits until the loop has stopped. Not from the loop itself; a simulated loop returns at once.
  virtual void Join() = 0;
};

class FileSystem;

// A Host gives one process its environment: loops, files, random numbers, the date.
class Host {
 public:
  virtual ~Host() = default;
  // Starts a loop. `name` becomes the name of its thread.
  virtual std::unique_ptr<LoopRunner> Spawn(const std::string& name) = 0;
  // As Spawn, for work without a deadline: its thread has a lower priority than all others.
  virtual std::unique_ptr<LoopRunner> SpawnInBackground(const std::string& name) {
    return Spawn(name);
  }
  virtual FileSystem* files() = 0;
  virtual std::uint64_t Random() = 0;  // for incarnations and the like; any thread
  // The date and time, for people to read; never for measuring. Any thread.
  virtual absl::Time WallTime() = 0;
  // Resident memory (RSS) of this process in bytes; 0: not known. Any thread.
  virtual std::uint64_t ResidentBytes() { return 0; }
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_LOOP_LOOP_H_
