// LoopDriver is the Driver of a real loop: the threads that wait take turns at driving it.
//
// One lock guards the loop and everything that lives on it. A thread that waits drives the loop
// itself, so that an answer reaches it without a hand-over; of several waiting threads one drives
// and the others sleep. A helper thread drives only if no user's thread has for a millisecond; it
// is not woken while one does. While the driving thread runs callbacks, one that comes to wait
// takes its place.
#ifndef LEEWAY_WORKER_CLIENT_LOOP_DRIVER_H_
#define LEEWAY_WORKER_CLIENT_LOOP_DRIVER_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/real_loop.h"
#include "worker/client/driver.h"

namespace leeway::worker {

class LoopDriver final : public Driver {
 public:
  // `busy_poll`: how long a thread polls before it blocks. `interrupted`: Config::interrupted.
  explicit LoopDriver(std::uint64_t seed, absl::Duration busy_poll = absl::Microseconds(100),
                      std::function<bool()> interrupted = nullptr);
  ~LoopDriver() override;  // Stop
  LoopDriver(const LoopDriver&) = delete;
  LoopDriver& operator=(const LoopDriver&) = delete;

  runtime::RealLoop* loop() override { return &loop_; }
  void Do(absl::FunctionRef<void()> f) override;
  void DoOneOfMany(absl::FunctionRef<void()> f) override;
  void DoLocked(absl::FunctionRef<void()> f) override;
  Waited WaitUntil(absl::FunctionRef<bool()> done) override;
  void CallUnlocked(runtime::Task callback) override;
  void Notify() override { notified_ = true; }
  // Ends the helper thread.
  void Stop() override;
  bool InCallback() const override;
  // Whether this thread is in a callback of any.
  static bool InAnyCallback();

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Driver { kNobody, kUser, kHelper };

  void Turn(Lock& lock);
  void WakeOthers();
  void Sleep(Lock& lock, absl::Time until);
  bool Interrupted(Lock& lock, absl::Time* ask_at);
  void Help();

  const std::function<bool()> interrupted_;
  std::mutex mutex_;
  runtime::RealLoop loop_;
  Driver driver_ = Driver::kNobody;
  const Lock* driving_ = nullptr;  // of the user's thread that drives
  bool calling_back_ = false;      // it runs callbacks
  int sleepers_ = 0;               // in the loop's poll
  absl::Time sleep_until_;         // of the last of them
  int waiting_ = 0;                // on turn_
  std::condition_variable turn_;   // threads that wait while another one drives
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
