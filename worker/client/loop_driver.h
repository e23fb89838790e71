// A loop, and the threads that take turns at driving it.
//
// One lock guards the loop and everything that lives on it. A thread that waits drives the loop
// itself, so that an answer reaches it without a hand-over; of several waiting threads one drives
// and the others sleep. A helper thread drives only if no user's thread has for a millisecond; it
// is not woken while one does.
//
// Owned by Session; any thread.
#ifndef LEEWAY_WORKER_CLIENT_LOOP_DRIVER_H_
#define LEEWAY_WORKER_CLIENT_LOOP_DRIVER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/real_loop.h"

namespace leeway::worker {

class LoopDriver {
 public:
  // `busy_poll`: how long a thread polls before it blocks.
  explicit LoopDriver(std::uint64_t seed, absl::Duration busy_poll = absl::Microseconds(100));
  ~LoopDriver();  // Stop
  LoopDriver(const LoopDriver&) = delete;
  LoopDriver& operator=(const LoopDriver&) = delete;

  runtime::RealLoop* loop() { return &loop_; }

  // Runs `f` under the lock, then everything that is ready on the loop (a send may have consumed
  // the only notification of a received message), then the callbacks.
  void Do(absl::FunctionRef<void()> f);

  // The same for one of many calls: runs `f`, but only now and then what is ready. The rest is done
  // when a thread waits, or by the helper thread once the calls stop.
  void DoOneOfMany(absl::FunctionRef<void()> f);

  // Runs `f` under the lock and nothing else. It must not touch the network.
  void DoLocked(absl::FunctionRef<void()> f);

  // Drives the loop, or waits while another thread does, until `done` holds, which is called under
  // the lock. Something on the loop must make it hold: there is no deadline here. False at once
  // from within a callback, which would wait for itself.
  bool WaitUntil(absl::FunctionRef<bool()> done);

  // Under the lock: has the driving thread run `callback` without the lock, in the order of these
  // calls. It may use Do.
  void CallUnlocked(runtime::Task callback);
  // Under the lock: what a thread waits for may hold now.
  void Notify() { notified_ = true; }

  // Ends the helper thread. Other calls still work. Not from within a callback.
  void Stop();
  // Whether this thread is in a callback of this driver.
  bool InCallback() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Driver { kNobody, kUser, kHelper };

  void Turn(Lock& lock);
  void WakeOthers();
  void Sleep(Lock& lock);
  void Help();

  std::mutex mutex_;
  runtime::RealLoop loop_;
  Driver driver_ = Driver::kNobody;
  int sleepers_ = 0;              // in the loop's poll
  absl::Time sleep_until_;        // of the last of them
  int waiting_ = 0;               // on turn_
  std::condition_variable turn_;  // threads that wait while another one drives
  bool notified_ = false;
  absl::Time last_driven_;  // by a user's thread
  int not_turned_ = 0;      // calls since the loop was last turned
  std::vector<runtime::Task> callbacks_;
  bool stop_ = false;
  std::condition_variable helper_wake_;
  std::thread helper_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CLIENT_LOOP_DRIVER_H_
