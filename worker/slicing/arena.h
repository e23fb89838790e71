// One piece of memory that several Buffers share: the keys or rows of all shards that slicing
// gathers at once. Freed with the last of them.
#ifndef LEEWAY_WORKER_SLICING_ARENA_H_
#define LEEWAY_WORKER_SLICING_ARENA_H_

#include <cstddef>
#include <utility>

#include "runtime/memory/buffer.h"

namespace leeway::worker {

class Arena {
 public:
  Arena() = default;
  // Uninitialised; 64-byte aligned.
  explicit Arena(std::size_t size) {
    holder_ = new Holder(runtime::Buffer::Allocate(size, &data_));
  }
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(holder_, other.holder_);
    return *this;
  }
  ~Arena() {
    if (holder_ != nullptr) holder_->Unref();
  }

  std::byte* data() const { return data_; }
  // A buffer that shares the memory. The part must lie within it, and must not be written once it
  // is shared.
  runtime::Buffer Part(std::size_t offset, std::size_t size) const {
    if (holder_ == nullptr) return {};
    holder_->Ref();
    return {data_ + offset, size, holder_};
  }

 private:
  class Holder final : public runtime::BufferOwner {
   public:
    explicit Holder(runtime::Buffer whole) : whole_(std::move(whole)) {}

   private:
    runtime::Buffer whole_;
  };

  std::byte* data_ = nullptr;
  Holder* holder_ = nullptr;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_ARENA_H_
