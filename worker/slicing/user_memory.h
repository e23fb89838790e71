// The user's array as an owner of buffers: zero-copy exports of it to the transport, counted.
//
// A ticket must not complete while the transport may still read the array, even if the answer has
// come (for example to a resent request). So the operation learns when the last export is released.
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

// A handle by which other threads post tasks to a loop; it may outlive the loop and its objects.
class Poster : public std::enable_shared_from_this<Poster> {
 public:
  explicit Poster(runtime::Loop* loop) : loop_(loop) {}
  // Any thread. After Close the task is dropped.
  void Post(runtime::Task task);
  // On the loop: no posted task runs from here on.
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

  // Gives up the exporter's own share, once; the object must not be used afterwards. True: nothing
  // reads the memory any more. False: `then` is posted to the loop as soon as that is so.
  bool Release(runtime::Task then);

 private:
  void OnUnused() override;

  enum State { kExported, kReleased, kUnused };
  std::shared_ptr<Poster> poster_;
  runtime::Task then_;
  std::atomic<int> state_ = kExported;
};

// The exporter's share. Its destructor releases the share without a notification.
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
