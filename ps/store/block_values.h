// The values of a dense block: readers share them, and who wants to change them first asks
// whether any reader is left.
#ifndef LEEWAY_PS_STORE_BLOCK_VALUES_H_
#define LEEWAY_PS_STORE_BLOCK_VALUES_H_

#include <cstddef>
#include <new>
#include <utility>

#include "runtime/buffer.h"

namespace leeway::ps {

// Uninitialised, aligned for vector instructions. Moved, never copied.
class BlockValues {
 public:
  BlockValues() = default;
  explicit BlockValues(std::size_t bytes) : memory_(new Memory(bytes)) {}
  BlockValues(BlockValues&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  BlockValues& operator=(BlockValues&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~BlockValues() {
    if (memory_ != nullptr) memory_->Unref();
  }

  bool empty() const { return memory_ == nullptr; }
  // Whether no reader holds a View: only then may data() be written.
  bool Writable() const { return memory_->unique(); }
  std::byte* data() const { return memory_->data; }

  runtime::Buffer View() const {
    memory_->Ref();
    return {memory_->data, memory_->bytes, memory_};
  }

 private:
  struct Memory final : public runtime::BufferOwner {
    static constexpr std::align_val_t kAlignment{64};
    explicit Memory(std::size_t size)
        : bytes(size), data(static_cast<std::byte*>(::operator new(size, kAlignment))) {}
    ~Memory() override { ::operator delete(data, kAlignment); }
    const std::size_t bytes;
    std::byte* const data;
  };

  Memory* memory_ = nullptr;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_BLOCK_VALUES_H_
