// A Driver gives a session's calls their turn at the worker's loop: they run under one lock, and a
// thread that waits has the loop run meanwhile.
//
// Owned by Session; any thread. The real one is LoopDriver. A simulated worker has one of its own,
// so that the same blocking calls run on virtual time.
#ifndef LEEWAY_WORKER_CLIENT_DRIVER_H_
#define LEEWAY_WORKER_CLIENT_DRIVER_H_

#include "absl/functional/function_ref.h"
#include "runtime/loop/loop.h"

namespace leeway::worker {

class Driver {
 public:
  virtual ~Driver() = default;

  virtual runtime::Loop* loop() = 0;

  // Runs `f` under the lock, then everything that is ready on the loop (a send may have consumed
  // the only notification of a received message), then the callbacks.
  virtual void Do(absl::FunctionRef<void()> f) = 0;

  // The same for one of many calls: runs `f`, but only now and then what is ready. The rest is done
  // when a thread waits, or soon after the calls stop.
  virtual void DoOneOfMany(absl::FunctionRef<void()> f) = 0;

  // Runs `f` under the lock and nothing else. It must not touch the network.
  virtual void DoLocked(absl::FunctionRef<void()> f) = 0;

  // Has the loop run until `done` holds, which is called under the lock. Something on the loop must
  // make it hold: there is no deadline here. kInCallback at once from within a callback, which
  // would wait for itself. kInterrupted: Config::interrupted has ended the wait.
  enum class Waited { kDone, kInCallback, kInterrupted };
  virtual Waited WaitUntil(absl::FunctionRef<bool()> done) = 0;

  // Under the lock: has a thread that is in one of these calls run `callback` without the lock, in
  // the order of these calls. It may use Do.
  virtual void CallUnlocked(runtime::Task callback) = 0;
  // Under the lock: what a thread waits for may hold now.
  virtual void Notify() = 0;

  // Nothing runs but in calls from now on. Not from within a callback.
  virtual void Stop() = 0;
  // Whether this thread is in a callback of this driver.
  virtual bool InCallback() const = 0;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CLIENT_DRIVER_H_
