// Memory that is shared by handing over a descriptor: it has no name, so nothing is left behind
// however its owners end. Only who made it may write it, and nobody can shorten it.
#ifndef LEEWAY_RUNTIME_MEMORY_SEALED_MEMORY_H_
#define LEEWAY_RUNTIME_MEMORY_SEALED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/unique_fd.h"

namespace leeway::runtime {

class MemoryMapping {
 public:
  MemoryMapping() = default;
  MemoryMapping(void* data, std::size_t size) : data_(data), size_(size) {}
  MemoryMapping(MemoryMapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  MemoryMapping& operator=(MemoryMapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~MemoryMapping();

  // Zeroed memory of this process alone. RESOURCE_EXHAUSTED when there is not so much.
  static absl::StatusOr<MemoryMapping> Private(std::size_t size);

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Zeroed, mapped for writing and sealed: other processes may map it for reading alone.
struct SealedMemory {
  static absl::StatusOr<SealedMemory> New(std::size_t bytes);
  UniqueFd fd;
  MemoryMapping mapping;
};

// How many bytes a descriptor from another process is good for. INVALID_ARGUMENT for memory that
// could be taken away under our hands, and what is no memory.
absl::StatusOr<std::size_t> SealedSize(int fd);
// To read it. UNAVAILABLE when this process can map no more.
absl::StatusOr<MemoryMapping> MapToRead(int fd, std::size_t bytes);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_SEALED_MEMORY_H_
