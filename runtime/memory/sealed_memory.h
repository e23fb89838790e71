// SealedMemory is memory that is shared with another process by passing a descriptor. It has no
// name, so nothing is left behind however its owners end. Only the process that made it can write
// to it, and no process can shorten it.
#ifndef LEEWAY_RUNTIME_MEMORY_SEALED_MEMORY_H_
#define LEEWAY_RUNTIME_MEMORY_SEALED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/unique_fd.h"

namespace leeway::runtime {

// MemoryMapping owns one mapping of memory and unmaps it. Movable.
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

  // Zeroed memory of this process alone, `size` bytes. RESOURCE_EXHAUSTED: there is not so much.
  static absl::StatusOr<MemoryMapping> Private(std::size_t size);

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Zeroed, mapped for writing and sealed: other processes can map it for reading only. New returns
// UNAVAILABLE where the system or a limit (ulimit -f) refuses it; the message names the cause.
struct SealedMemory {
  static absl::StatusOr<SealedMemory> New(std::size_t bytes);
  UniqueFd fd;
  MemoryMapping mapping;
};

// The size in bytes of the memory behind a descriptor from another process. INVALID_ARGUMENT: the
// memory could be taken away while it is read (not sealed, or huge pages), or the descriptor is not
// memory.
absl::StatusOr<std::size_t> SealedSize(int fd);
// Maps `bytes` bytes of it for reading. UNAVAILABLE: this process can map no more.
absl::StatusOr<MemoryMapping> MapToRead(int fd, std::size_t bytes);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_SEALED_MEMORY_H_
