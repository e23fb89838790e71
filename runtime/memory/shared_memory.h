// Memory of this process that others on the machine may read where it lies: what a user allocates
// for tensors, so that a push over shared memory need not copy them.
//
// Whoever sends looks an address up (Find) and hands the descriptor over. That the other side does
// not read what the user writes later, though it may still have the memory mapped, is a matter of
// Detach: from then on this process has pages of its own, which begin as copies when they are
// written to, and the other side goes on seeing what was there. It needs nobody's consent, so
// memory can always be given back to its user at once, whatever a peer does or fails to do.
#ifndef LEEWAY_RUNTIME_MEMORY_SHARED_MEMORY_H_
#define LEEWAY_RUNTIME_MEMORY_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/memory/sealed_memory.h"

namespace leeway::runtime {

// Any thread.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // At a time in a process: each takes a descriptor here and a mapping on either side.
  static constexpr std::size_t kLiveMax = 256;

  // Zeroed. An error where the system has no such memory, or there are kLiveMax of them.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> New(std::size_t bytes);
  // Unmaps it here; those who have it mapped elsewhere keep what they see.
  ~SharedMemory();

  std::byte* data() const { return memory_.mapping.data(); }
  std::size_t size() const { return memory_.mapping.size(); }
  int fd() const { return memory_.fd.get(); }
  std::uint64_t id() const { return id_; }  // never that of another

  // Where these bytes lie, if all of them are in one such memory that is not detached.
  struct Location {
    std::shared_ptr<SharedMemory> memory;
    std::uint64_t offset = 0;
  };
  static std::optional<Location> Find(const void* data, std::size_t size);

  // For good. What is written from here on only this process sees, at the same addresses. Writes
  // and reads of other threads that fall together with it are not disturbed.
  void Detach();

  // Calls `freed` whenever one of them has gone, on the thread that dropped it, until Forget, which
  // waits for a call under way. It must not block nor call anything here.
  static std::uint64_t WhenFreed(std::function<void()> freed);
  static void Forget(std::uint64_t listener);

 private:
  SharedMemory(SealedMemory memory, std::uint64_t id) : memory_(std::move(memory)), id_(id) {}

  const SealedMemory memory_;
  const std::uint64_t id_;
  bool detached_ = false;  // under the registry's lock
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_SHARED_MEMORY_H_
