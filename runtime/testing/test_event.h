// TestEvent is a one-time event that tests wait for. Any thread. It uses the standard library,
// which ThreadSanitizer understands; absl::Notification it understands only if Abseil is built for
// it.
#ifndef LEEWAY_RUNTIME_TESTING_TEST_EVENT_H_
#define LEEWAY_RUNTIME_TESTING_TEST_EVENT_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace leeway::runtime {

class TestEvent {
 public:
  void Notify() {
    // Notifies under the lock: a thread that has seen the event may destroy it at once.
    const std::lock_guard lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool happened() const {
    const std::lock_guard lock(mutex_);
    return happened_;
  }
  // Waits for the event; false, and the test has failed, if it has not happened within a minute.
  bool Wait() const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::minutes(1), [this] { return happened_; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool happened_ = false;  // under mutex_
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_TESTING_TEST_EVENT_H_
