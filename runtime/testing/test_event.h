// Something that happens once, for tests to wait for. Made of the standard library's parts, which
// ThreadSanitizer understands (an absl::Notification it sees only where Abseil is built for it).
#ifndef LEEWAY_RUNTIME_TESTING_TEST_EVENT_H_
#define LEEWAY_RUNTIME_TESTING_TEST_EVENT_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace leeway::runtime {

class TestEvent {
 public:
  void Notify() {
    // Under the lock to the end: who has seen it may destroy the event at once.
    const std::lock_guard lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool happened() const {
    const std::lock_guard lock(mutex_);
    return happened_;
  }
  // False if it has not happened within a minute: then the test has failed.
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
