#include "runtime/memory/buffer.h"

#include <cstring>
#include <limits>
#include <new>

#include "runtime/memory/free_list.h"
#include "runtime/memory/page_pool.h"

namespace leeway::runtime {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and enough for every vector unit

// A header in front of its bytes, in one allocation with them.
class HeapBytes final : public BufferOwner {
 public:
  // Null: there is not so much memory.
  static HeapBytes* TryNew(std::size_t size) {
    constexpr std::size_t kSizeMax = std::numeric_limits<std::ptrdiff_t>::max() - kAlignment;
    if (size > kSizeMax) return nullptr;  // the sum below would wrap around
    void* const memory =
        ::operator new (kAlignment + size, std::align_val_t{kAlignment}, std::nothrow);
    return memory == nullptr ? nullptr : new (memory) HeapBytes;
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + kAlignment; }

 private:
  void OnUnused() override {
    this->~HeapBytes();
    ::operator delete (this, std::align_val_t{kAlignment});
  }
};
static_assert(sizeof(HeapBytes) <= kAlignment);

// Half or a quarter of a large page: the size of a block of most dense tables. Pushes of workers
// lie here until they are added up; reading many pushes side by side takes an eighth longer from
// small pages.
class PartOfPage final : public BufferOwner {
 public:
  static bool Takes(std::size_t size) {
    const bool a_blocks = size == PagePool::kHalfBytes || size == PagePool::kPieceBytesMax;
    return a_blocks && PagePool::Takes(size);
  }

  // Null: there is no more memory.
  static PartOfPage* TryNew(std::size_t size) {
    try {
      return new PartOfPage(size);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  std::byte* data() { return data_; }

 private:
  explicit PartOfPage(std::size_t size) : size_(size), data_(PagePool::Shared().Allocate(size)) {}
  ~PartOfPage() override { PagePool::Shared().Free(data_, size_); }

  const std::size_t size_;
  std::byte* const data_;
};

// As HeapBytes, with the alignment of operator new: small copies are made for every message, and a
// larger alignment costs several times as much to allocate.
class CopiedBytes final : public BufferOwner {
 public:
  static CopiedBytes* New(const void* data, std::size_t size) {
    constexpr std::size_t kSizeMax = std::numeric_limits<std::ptrdiff_t>::max() - kAlignment;
    if (size > kSizeMax) throw std::bad_alloc();
    const bool small = sizeof(CopiedBytes) + size <= kSmallBytes;
    void* const memory = small ? Small::Take() : ::operator new(sizeof(CopiedBytes) + size);
    auto* bytes = new (memory) CopiedBytes(small);
    std::memcpy(bytes->data(), data, size);
    return bytes;
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }

 private:
  static constexpr std::size_t kSmallBytes = 256;
  using Small = FreeList<kSmallBytes>;

  explicit CopiedBytes(bool small) : small_(small) {}
  void OnUnused() override {
    const bool small = small_;
    this->~CopiedBytes();
    small ? Small::Give(this) : ::operator delete(this);
  }

  const bool small_;
};
static_assert(sizeof(CopiedBytes) % alignof(std::max_align_t) == 0);

}  // namespace

Buffer Buffer::Allocate(std::size_t size, std::byte** data) {
  Buffer buffer = TryAllocate(size, data);
  if (*data == nullptr) throw std::bad_alloc();
  return buffer;
}

Buffer Buffer::TryAllocate(std::size_t size, std::byte** data) {
  const auto made = [&](auto* bytes) {
    *data = bytes == nullptr ? nullptr : bytes->data();
    return bytes == nullptr ? Buffer() : Buffer(*data, size, bytes);
  };
  return PartOfPage::Takes(size) ? made(PartOfPage::TryNew(size)) : made(HeapBytes::TryNew(size));
}

Buffer Buffer::CopyOf(const void* data, std::size_t size) {
  if (size == 0) return Buffer();
  if (PartOfPage::Takes(size)) {
    std::byte* to = nullptr;
    Buffer copy = Allocate(size, &to);
    std::memcpy(to, data, size);
    return copy;
  }
  CopiedBytes* bytes = CopiedBytes::New(data, size);
  return Buffer(bytes->data(), size, bytes);
}

}  // namespace leeway::runtime
