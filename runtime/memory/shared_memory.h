// SharedMemory is memory of this process that other processes on the machine can read in place.
// Users allocate tensors in it, so that a push over shared memory need not copy them.
//
// A sender looks up an address (Find) and passes the descriptor to its peer. Detach makes sure that
// the peer does not see what the user writes later, although it may still have the memory mapped:
// from then on this process has private pages, copied when they are first written to, and the peer
// goes on seeing the old bytes. Detach needs no consent of the peer, so memory can always be
// returned to its user at once, whatever a peer does or fails to do.
//
// In a child that fork() made, what it inherited is plain memory: it is not found, and to destroy
// it only unmaps it there.
#ifndef LEEWAY_RUNTIME_MEMORY_SHARED_MEMORY_H_
#define LEEWAY_RUNTIME_MEMORY_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "runtime/base/fork.h"
#include "runtime/memory/sealed_memory.h"

namespace leeway::runtime {

// Any thread.
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // The largest number of them in a process at a time: each takes a descriptor here and a mapping
  // in both processes.
  static constexpr std::size_t kLiveMax = 256;

  // Zeroed, `bytes` long. RESOURCE_EXHAUSTED: there are kLiveMax of them. Otherwise as
  // SealedMemory::New.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> New(std::size_t bytes);
  // Unmaps it here. Processes that have it mapped keep it as it is.
  ~SharedMemory();

  std::byte* data() const { return memory_.mapping.data(); }
  std::size_t size() const { return memory_.mapping.size(); }
  int fd() const { return memory_.fd.get(); }
  std::uint64_t id() const { return id_; }  // never used again for another one

  // The SharedMemory and offset of these bytes; nullopt unless all of them lie in one that is not
  // detached.
  struct Location {
    std::shared_ptr<SharedMemory> memory;
    std::uint64_t offset = 0;
  };
  static std::optional<Location> Find(const void* data, std::size_t size);

  // Makes later writes private to this process, at the same addresses, for good. Other threads may
  // read and write the memory at the same time.
  void Detach();

  // Registers `freed`, which is called whenever a SharedMemory has been destroyed, on the thread
  // that dropped it, until Forget. Forget waits for a call under way. `freed` must neither block
  // nor call anything in this header.
  static std::uint64_t WhenFreed(std::function<void()> freed);
  static void Forget(std::uint64_t listener);

 private:
  SharedMemory(SealedMemory memory, std::uint64_t id)
      : memory_(std::move(memory)), id_(id), forks_(ForkCount()) {}

  const SealedMemory memory_;
  const std::uint64_t id_;
  const std::uint64_t forks_;  // where it was made
  bool detached_ = false;      // guarded by the registry's mutex
};

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_SHARED_MEMORY_H_
