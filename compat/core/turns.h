// Turns runs the handlers of one application one at a time, in the order in which their messages
// came, on the threads that bring them.
//
// Any thread. A message that comes while a handler runs is dealt with by the thread that runs it.
// Messages of a kind that the program has no handler for yet wait until Open.
#ifndef LEEWAY_COMPAT_CORE_TURNS_H_
#define LEEWAY_COMPAT_CORE_TURNS_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace leeway::compat {

enum class MessageKind { kSimple = 0, kKeyValues = 1 };

class Turns {
 public:
  using Task = absl::AnyInvocable<void()>;

  void Add(MessageKind kind, Task task) {
    std::unique_lock lock(mutex_);
    if (closed_) return;
    waiting_.emplace_back(kind, std::move(task));
    RunWaiting(lock);
  }
  void Open(MessageKind kind) {
    std::unique_lock lock(mutex_);
    open_[static_cast<int>(kind)] = true;
    RunWaiting(lock);
  }
  // Drops what waits, and waits for the handler that runs, unless it is this thread's.
  void Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    std::deque<std::pair<MessageKind, Task>> dropped;
    dropped.swap(waiting_);
    idle_.wait(lock, [this] { return !running_ || runner_ == std::this_thread::get_id(); });
    lock.unlock();  // what is dropped may answer its sender
  }

 private:
  void RunWaiting(std::unique_lock<std::mutex>& lock) {
    if (running_) return;
    running_ = true;
    runner_ = std::this_thread::get_id();
    for (auto next = Next(); next != waiting_.end(); next = Next()) {
      Task task = std::move(next->second);
      waiting_.erase(next);
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
    running_ = false;
    idle_.notify_all();
  }
  std::deque<std::pair<MessageKind, Task>>::iterator Next() {
    auto next = waiting_.begin();
    while (next != waiting_.end() && !open_[static_cast<int>(next->first)]) ++next;
    return next;
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::pair<MessageKind, Task>> waiting_;
  bool open_[2] = {false, false};
  bool running_ = false;
  std::thread::id runner_;
  bool closed_ = false;
};

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_TURNS_H_
