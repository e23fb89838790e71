#include "worker/client/loop_driver.h"

#include <chrono>
#include <utility>

namespace leeway::worker {
namespace {

// How long no user's thread must have driven before the helper takes over. An operation that no
// thread waits for may be sent as much later.
constexpr absl::Duration kIdle = absl::Milliseconds(1);

// Calls of DoOneOfMany run what is ready once in so many.
constexpr int kCallsATurn = 32;

// How often a thread that waits asks whether it is to go on: a person who interrupts a program sees
// no delay.
constexpr absl::Duration kAskInterval = absl::Milliseconds(100);

// The drivers whose callbacks this thread is running, the innermost first: a callback may use
// another worker, whose callbacks then run within it.
struct Running {
  const LoopDriver* driver;
  const Running* outer;
};
thread_local const Running* running = nullptr;

}  // namespace

LoopDriver::LoopDriver(std::uint64_t seed, absl::Duration busy_poll,
                       std::function<bool()> interrupted)
    : interrupted_(std::move(interrupted)), loop_(seed, busy_poll), helper_([this] { Help(); }) {}

LoopDriver::~LoopDriver() { Stop(); }

void LoopDriver::Stop() {
  {
    Lock lock(mutex_);
    stop_ = true;
    helper_wake_.notify_all();
    loop_.Wake();
  }
  if (helper_.joinable()) helper_.join();
}

bool LoopDriver::InAnyCallback() { return running != nullptr; }

bool LoopDriver::InCallback() const {
  for (const Running* one = running; one != nullptr; one = one->outer) {
    if (one->driver == this) return true;
  }
  return false;
}

void LoopDriver::CallUnlocked(runtime::Task callback) { callbacks_.push_back(std::move(callback)); }

void LoopDriver::Do(absl::FunctionRef<void()> f) {
  Lock lock(mutex_);
  f();
  Turn(lock);
  last_driven_ = loop_.Now();
}

void LoopDriver::DoOneOfMany(absl::FunctionRef<void()> f) {
  Lock lock(mutex_);
  f();
  // A thread that sleeps on the loop's descriptors may miss a notification that this call has
  // consumed.
  if (sleepers_ == 0 && !notified_ && callbacks_.empty() && ++not_turned_ < kCallsATurn) return;
  Turn(lock);
  last_driven_ = loop_.Now();
}

void LoopDriver::DoLocked(absl::FunctionRef<void()> f) {
  Lock lock(mutex_);
  f();
}

// Runs the loop until nothing is ready, runs the callbacks that this made, and wakes other threads
// that need to know.
void LoopDriver::Turn(Lock& lock) {
  not_turned_ = 0;
  while (loop_.RunReady()) {
  }
  // Within a callback the outer Turn runs them: one after the other, without a deeper stack.
  while (!callbacks_.empty() && !InCallback()) {
    std::vector<runtime::Task> callbacks = std::exchange(callbacks_, {});
    if (driving_ == &lock) calling_back_ = true;
    lock.unlock();
    const Running here{this, running};
    running = &here;
    for (runtime::Task& callback : callbacks) {
      callback();
      callback = nullptr;
    }
    running = here.outer;
    lock.lock();
    if (driving_ == &lock) calling_back_ = false;
    notified_ = true;
    while (loop_.RunReady()) {
    }
  }
  WakeOthers();
}

// Threads in the poll do not see changes that others make under the lock: that what they wait for
// holds, or that there is an earlier timer.
void LoopDriver::WakeOthers() {
  const bool notified = std::exchange(notified_, false);
  if (notified && waiting_ > 0) turn_.notify_all();
  if (sleepers_ > 0 && (notified || loop_.PrepareWait(sleep_until_).until < sleep_until_)) {
    loop_.Wake();
  }
}

void LoopDriver::Sleep(Lock& lock, absl::Time until) {
  const runtime::RealLoop::WaitSet set = loop_.PrepareWait(until);
  sleep_until_ = set.until;
  ++sleepers_;
  lock.unlock();
  runtime::RealLoop::Wait(set);
  lock.lock();
  --sleepers_;
  // This thread may have taken the wake-up that was meant for the driving one.
  if (sleepers_ > 0) loop_.Wake();
}

// Asks without the lock, when it is time to.
bool LoopDriver::Interrupted(Lock& lock, absl::Time* ask_at) {
  if (interrupted_ == nullptr || loop_.Now() < *ask_at) return false;
  lock.unlock();
  const bool interrupted = interrupted_();
  lock.lock();
  *ask_at = loop_.Now() + kAskInterval;
  return interrupted;
}

LoopDriver::Waited LoopDriver::WaitUntil(absl::FunctionRef<bool()> done) {
  if (InCallback()) return Waited::kInCallback;
  Lock lock(mutex_);
  Turn(lock);
  absl::Time ask_at = interrupted_ == nullptr ? absl::InfiniteFuture() : loop_.Now() + kAskInterval;
  bool interrupted = false;
  while (!done() && !(interrupted = Interrupted(lock, &ask_at))) {
    if (driving_ != &lock && driver_ == Driver::kUser && !calling_back_) {
      ++waiting_;
      if (interrupted_ == nullptr) {
        turn_.wait(lock);
      } else {
        turn_.wait_for(lock, absl::ToChronoNanoseconds(kAskInterval));
      }
      --waiting_;
      continue;
    }
    if (driving_ != &lock) {
      // The helper goes back to watching once it sees that a user's thread drives.
      if (driver_ == Driver::kHelper && sleepers_ > 0) loop_.Wake();
      driver_ = Driver::kUser;
      driving_ = &lock;
      calling_back_ = false;
    }
    Sleep(lock, ask_at);
    Turn(lock);
  }
  if (driving_ == &lock) {
    driver_ = Driver::kNobody;
    driving_ = nullptr;
  }
  // The next thread drives, or passes it on here if what it waits for holds.
  if (driver_ == Driver::kNobody && waiting_ > 0) turn_.notify_one();
  last_driven_ = loop_.Now();
  return interrupted ? Waited::kInterrupted : Waited::kDone;
}

void LoopDriver::Help() {
  Lock lock(mutex_);
  while (!stop_) {
    const absl::Duration idle = loop_.Now() - last_driven_;
    if (driver_ == Driver::kUser || idle < kIdle) {
      const absl::Duration rest = driver_ == Driver::kUser ? kIdle : kIdle - idle;
      helper_wake_.wait_for(lock, absl::ToChronoNanoseconds(rest));
      continue;
    }
    driver_ = Driver::kHelper;
    Turn(lock);
    if (driver_ != Driver::kHelper || stop_) continue;
    Sleep(lock, absl::InfiniteFuture());
    if (driver_ != Driver::kHelper) continue;
    Turn(lock);
    if (driver_ == Driver::kHelper) driver_ = Driver::kNobody;
  }
  if (driver_ == Driver::kHelper) driver_ = Driver::kNobody;
}

}  // namespace leeway::worker
