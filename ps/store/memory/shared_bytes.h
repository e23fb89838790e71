// Bytes of a store that it shares with readers and snapshots. Before a write the store asks whether
// it is the only owner, and copies them if not.
#ifndef LEEWAY_PS_STORE_MEMORY_SHARED_BYTES_H_
#define LEEWAY_PS_STORE_MEMORY_SHARED_BYTES_H_

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "runtime/memory/buffer.h"
#include "runtime/memory/page_pool.h"

namespace leeway::ps {

class BlockFreeList;

// Uninitialised, 64-byte aligned: in large pages where that may help, else on the heap.
inline std::byte* NewPiece(std::size_t bytes) {
  using runtime::PagePool;
  if (PagePool::Takes(bytes)) return PagePool::Shared().Allocate(bytes);
  return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{PagePool::kAlignment}));
}
inline void DeletePiece(std::byte* memory, std::size_t bytes) {
  using runtime::PagePool;
  if (PagePool::Takes(bytes)) return PagePool::Shared().Free(memory, bytes);
  ::operator delete (memory, std::align_val_t{PagePool::kAlignment});
}

// Uninitialised, aligned for vector instructions. Moved, never copied.
class SharedBytes {
 public:
  struct Memory;

  SharedBytes() = default;
  explicit SharedBytes(std::size_t bytes) : memory_(new Memory(bytes)) {}
  explicit SharedBytes(Memory* memory) : memory_(memory) {}  // with one reference to it
  SharedBytes(SharedBytes&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  SharedBytes& operator=(SharedBytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~SharedBytes() {
    if (memory_ != nullptr) memory_->Unref();
  }

  bool empty() const { return memory_ == nullptr; }
  // Whether no View is left: only then may bytes that a View showed be written.
  bool Writable() const { return memory_->unique(); }
  std::byte* data() const { return memory_->data; }
  std::size_t size() const { return memory_->bytes; }

  runtime::Buffer View() const { return View(0, memory_->bytes); }
  runtime::Buffer View(std::size_t offset, std::size_t size) const {
    memory_->Ref();
    return {memory_->data + offset, size, memory_};
  }

  struct Memory final : public runtime::BufferOwner {
    explicit Memory(std::size_t size, int refs = 1)
        : BufferOwner(refs), bytes(size), data(NewPiece(size)) {}
    ~Memory() override { DeletePiece(data, bytes); }
    void OnUnused() override;

    const std::size_t bytes;
    std::byte* const data;
    // The pool that it returns to when it is not used any more; null: the heap.
    std::shared_ptr<BlockFreeList> home;
    Memory* next = nullptr;  // on the free list
  };

 private:
  Memory* memory_ = nullptr;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_MEMORY_SHARED_BYTES_H_
