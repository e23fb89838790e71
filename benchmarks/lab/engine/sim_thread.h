// A SimThread runs a function that blocks, on virtual time: a thread of its own that goes on only
// while the world's thread waits for it.
//
// So a program with blocking calls runs in the simulator unchanged, and in an order that follows
// from the seed alone. Real computation may run beside the world (Compute): its result is used at a
// virtual time that does not depend on how long it really took.
#ifndef LEEWAY_BENCHMARKS_LAB_ENGINE_SIM_THREAD_H_
#define LEEWAY_BENCHMARKS_LAB_ENGINE_SIM_THREAD_H_

#include <functional>
#include <semaphore>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "runtime/sim/sim_world.h"
#include "worker/client/driver.h"

namespace leeway::lab {

class SimThread {
 public:
  // `body` begins with the world's next event.
  SimThread(runtime::SimWorld* world, std::function<void(SimThread& self)> body);
  // The body has returned.
  ~SimThread() { thread_.join(); }
  SimThread(const SimThread&) = delete;
  SimThread& operator=(const SimThread&) = delete;

  // ---- in the body ----

  // Until Unblock.
  void Block();
  void Sleep(absl::Duration duration);
  // Runs `work`, which takes that long on virtual time. It uses nothing that the world uses.
  void Compute(absl::Duration duration, absl::FunctionRef<void()> work);

  // ---- on the world's thread, or in a body ----

  // The body goes on with a later event, if it is in Block then.
  void Unblock();
  bool over() const { return over_; }

 private:
  void Resume();  // the world's thread: until the body pauses
  void Pause();   // the body: until it is resumed

  runtime::SimWorld* const world_;
  std::binary_semaphore turn_{0}, back_{0};
  bool blocked_ = false;
  bool unblocking_ = false;
  bool over_ = false;
  std::thread thread_;
};

// SimDriver is the driver of a worker whose calls are made in the body of a SimThread.
class SimDriver final : public worker::Driver {
 public:
  SimDriver(runtime::Loop* loop, SimThread* thread) : loop_(loop), thread_(thread) {}

  runtime::Loop* loop() override { return loop_; }
  void Do(absl::FunctionRef<void()> f) override;
  void DoOneOfMany(absl::FunctionRef<void()> f) override { Do(f); }
  void DoLocked(absl::FunctionRef<void()> f) override { f(); }
  Waited WaitUntil(absl::FunctionRef<bool()> done) override;
  void CallUnlocked(runtime::Task callback) override;
  void Notify() override { thread_->Unblock(); }
  void Stop() override {}
  bool InCallback() const override { return in_callback_; }

 private:
  void RunCallbacks();

  runtime::Loop* const loop_;
  SimThread* const thread_;
  std::vector<runtime::Task> callbacks_;
  bool in_callback_ = false;
};

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_ENGINE_SIM_THREAD_H_
