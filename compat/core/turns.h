// Turns runs the handlers of one application one at a time, in the order in which their messages
// came.
//
// Any thread. A message is dealt with by the thread that brings it, or, if a handler runs just
// then, by the thread that runs that one; a message that has a home by its home alone. Messages of
// a kind that the program has no handler for yet wait until Open.
#ifndef LEEWAY_COMPAT_CORE_TURNS_H_
#define LEEWAY_COMPAT_CORE_TURNS_H_

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace leeway::compat {

enum class MessageKind { kSimple = 0, kKeyValues = 1 };

class Turns : public std::enable_shared_from_this<Turns> {
 public:
  using Task = absl::AnyInvocable<void()>;
  // A thread, and the way to it. Tasks that are given to it are short, and may be dropped once the
  // thread has ended.
  struct Home {
    std::thread::id thread;
    absl::AnyInvocable<void(Task) const> post;  // null: any thread will do
  };

  void Add(MessageKind kind, Task task, Home home = {}) {
    std::unique_lock lock(mutex_);
    if (closed_) return;
    waiting_.push_back({kind, std::move(task), std::move(home)});
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
    std::deque<Message> dropped;
    dropped.swap(waiting_);
    idle_.wait(lock, [this] { return !running_ || runner_ == std::this_thread::get_id(); });
    lock.unlock();  // what is dropped may answer its sender
  }

 private:
  struct Message {
    MessageKind kind;
    Task task;
    Home home;
  };

  void RunWaiting(std::unique_lock<std::mutex>& lock) {
    if (running_) return;
    running_ = true;
    runner_ = std::this_thread::get_id();
    for (auto next = Next(); next != waiting_.end(); next = Next()) {
      if (next->home.post != nullptr && next->home.thread != runner_) {
        next->home.post([self = weak_from_this()] {
          const std::shared_ptr<Turns> turns = self.lock();
          if (turns != nullptr) turns->RunAtHome();
        });
        break;
      }
      Task task = std::move(next->task);
      waiting_.erase(next);
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
    running_ = false;
    idle_.notify_all();
  }
  void RunAtHome() {
    std::unique_lock lock(mutex_);
    RunWaiting(lock);
  }
  std::deque<Message>::iterator Next() {
    auto next = waiting_.begin();
    while (next != waiting_.end() && !open_[static_cast<int>(next->kind)]) ++next;
    return next;
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Message> waiting_;
  bool open_[2] = {false, false};
  bool running_ = false;
  std::thread::id runner_;
  bool closed_ = false;
};

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_TURNS_H_
