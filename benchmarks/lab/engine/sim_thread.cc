#include "benchmarks/lab/engine/sim_thread.h"

#include <utility>

namespace leeway::lab {

SimThread::SimThread(runtime::SimWorld* world, std::function<void(SimThread& self)> body)
    : world_(world), thread_([this, body = std::move(body)] {
        turn_.acquire();
        body(*this);
        over_ = true;
        back_.release();
      }) {
  world_->Schedule(absl::ZeroDuration(), [this] { Resume(); });
}

void SimThread::Resume() {
  turn_.release();
  back_.acquire();
}

void SimThread::Pause() {
  back_.release();
  turn_.acquire();
}

void SimThread::Block() {
  blocked_ = true;
  Pause();
}

void SimThread::Unblock() {
  if (!blocked_ || unblocking_) return;
  unblocking_ = true;
  world_->Schedule(absl::ZeroDuration(), [this] {
    unblocking_ = false;
    blocked_ = false;
    Resume();
  });
}

void SimThread::Sleep(absl::Duration duration) {
  Compute(duration, [] {});
}

void SimThread::Compute(absl::Duration duration, absl::FunctionRef<void()> work) {
  world_->Schedule(duration, [this] { Resume(); });
  back_.release();  // the world goes on, and waits when the time is up
  work();
  turn_.acquire();
}

void SimDriver::Do(absl::FunctionRef<void()> f) {
  f();
  RunCallbacks();
}

SimDriver::Waited SimDriver::WaitUntil(absl::FunctionRef<bool()> done) {
  if (in_callback_) return Waited::kInCallback;
  RunCallbacks();
  while (!done()) {
    thread_->Block();
    RunCallbacks();
  }
  return Waited::kDone;
}

void SimDriver::CallUnlocked(runtime::Task callback) {
  callbacks_.push_back(std::move(callback));
  thread_->Unblock();
}

void SimDriver::RunCallbacks() {
  while (!callbacks_.empty() && !in_callback_) {
    std::vector<runtime::Task> callbacks = std::exchange(callbacks_, {});
    in_callback_ = true;
    for (runtime::Task& callback : callbacks) callback();
    in_callback_ = false;
  }
}

}  // namespace leeway::lab
