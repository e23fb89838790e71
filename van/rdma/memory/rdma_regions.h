// RdmaRegions keeps the registrations of memory that one device sends from.
//
// Registering memory costs a system call and as much time as copying some of it, so it pays to keep
// it registered. But nothing tells when a user's array is freed, and other memory may lie at the
// same addresses afterwards without the device noticing. So registrations are kept only for memory
// with an identity that is never used twice: arrays of Worker::Allocate
// (runtime/memory/shared_memory.h), and the pages of a server's blocks
// (runtime/memory/page_pool.h). Each is registered as a whole when it is first sent from. All other
// memory is registered for one message.
//
// Lives on the transport's loop.
#ifndef LEEWAY_VAN_RDMA_MEMORY_RDMA_REGIONS_H_
#define LEEWAY_VAN_RDMA_MEMORY_RDMA_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "runtime/memory/page_pool.h"
#include "runtime/memory/shared_memory.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

class RdmaRegions {
 public:
  // The most pages whose registration is kept; further ones are registered for one message.
  // Together they may lock half of the memory that the process may lock.
  static constexpr std::size_t kPagesMax = 16384;  // 32 GiB

  explicit RdmaRegions(verbs::Device* device);

  // A registration that covers these bytes for as long as the pointer is held. Null: they cannot be
  // registered.
  std::shared_ptr<verbs::MemoryRegion> Find(std::span<const std::byte> bytes);
  // Drops the registrations of arrays that have been freed or detached, and of pages whose memory
  // was given back to the system.
  void Purge();

 private:
  struct Kept {
    std::weak_ptr<runtime::SharedMemory> memory;
    std::shared_ptr<verbs::MemoryRegion> region;  // null: it could not be registered
  };

  struct KeptPage {
    std::uint64_t number = 0;
    std::shared_ptr<verbs::MemoryRegion> region;  // null: it could not be registered
  };

  std::shared_ptr<verbs::MemoryRegion> OfArray(const runtime::SharedMemory::Location& place);
  std::shared_ptr<verbs::MemoryRegion> OfPage(const runtime::PagePool::Memory& memory);
  std::shared_ptr<verbs::MemoryRegion> Register(std::span<const std::byte> bytes);

  verbs::Device* const device_;
  const std::size_t pages_max_;
  absl::flat_hash_map<std::byte*, KeptPage> pages_;
  absl::flat_hash_map<std::uint64_t, Kept> kept_;  // by SharedMemory::id
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_MEMORY_RDMA_REGIONS_H_
