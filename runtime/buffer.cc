#include "runtime/buffer.h"

#include <limits>
#include <new>

namespace leeway::runtime {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and enough for every vector unit

// Lies in front of its bytes, in one allocation with them.
class HeapBytes final : public BufferOwner {
 public:
  static HeapBytes* New(std::size_t size) {
    constexpr std::size_t kSizeMax = std::numeric_limits<std::ptrdiff_t>::max() - kAlignment;
    if (size > kSizeMax) throw std::bad_alloc();  // the sum below would wrap around
    return new (::operator new (kAlignment + size, std::align_val_t{kAlignment})) HeapBytes;
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + kAlignment; }

 private:
  void OnUnused() override {
    this->~HeapBytes();
    ::operator delete (this, std::align_val_t{kAlignment});
  }
};
static_assert(sizeof(HeapBytes) <= kAlignment);

}  // namespace

Buffer Buffer::Allocate(std::size_t size, std::byte** data) {
  HeapBytes* bytes = HeapBytes::New(size);
  *data = bytes->data();
  return Buffer(bytes->data(), size, bytes);
}

Buffer Buffer::CopyOf(const void* data, std::size_t size) {
  if (size == 0) return Buffer();
  std::byte* copy = nullptr;
  Buffer buffer = Allocate(size, &copy);
  std::memcpy(copy, data, size);
  return buffer;
}

}  // namespace leeway::runtime
