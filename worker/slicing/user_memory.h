// The user's arrays, exported to the transport without a copy. A ticket must not complete while the
// transport may still read the array, even if the answer is there (a request that was resent, for
// example); so the exports are counted, and the operation hears when the last one is back.
#ifndef LEEWAY_WORKER_SLICING_USER_MEMORY_H_
#define LEEWAY_WORKER_SLICING_USER_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/loop/loop.h"
#include "runtime/memory/buffer.h"

namespace leeway::worker {

// A way to a loop's objects from other threads that may outlive both.
class Poster : public std::enable_shared_from_this<Poster> {
 public:
  explicit Poster(runtime::Loop* loop) : loop_(loop) {}
  // Any thread. After Close the task is dropped.
  void Post(runtime::Task task);
  // On the loop: nothing posted runs from here on.
  void Close();
  bool closed();

 private:
  std::mutex mutex_;
  runtime::Loop* loop_;  // null once closed
};

class UserMemory final : public runtime::BufferOwner {
 public:
  explicit UserMemory(std::shared_ptr<Poster> poster) : poster_(std::move(poster)) {}

  runtime::Buffer Export(const void* data, std::size_t size) {
    Ref();
    return {data, size, this};
  }

  // Gives up the exporter's own share, once, and the use of this object. True: nobody reads the
  // memory any more. False: `then` is posted to the loop as soon as that is so.
  bool Release(runtime::Task then);

 private:
  void OnUnused() override;

  enum State { kExported, kReleased, kUnused };
  std::shared_ptr<Poster> poster_;
  runtime::Task then_;
  std::atomic<int> state_ = kExported;
};

// Holds the exporter's share; dropping it releases without a word.
class UserMemoryHold {
 public:
  UserMemoryHold() = default;
  explicit UserMemoryHold(std::shared_ptr<Poster> poster)
      : memory_(new UserMemory(std::move(poster))) {}
  UserMemoryHold(UserMemoryHold&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)) {}
  UserMemoryHold& operator=(UserMemoryHold&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~UserMemoryHold() {
    if (memory_ != nullptr) memory_->Release(nullptr);
  }

  explicit operator bool() const { return memory_ != nullptr; }
  UserMemory* operator->() const { return memory_; }
  bool Release(runtime::Task then) {
    UserMemory* memory = std::exchange(memory_, nullptr);
    return memory == nullptr || memory->Release(std::move(then));
  }

 private:
  UserMemory* memory_ = nullptr;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_USER_MEMORY_H_
