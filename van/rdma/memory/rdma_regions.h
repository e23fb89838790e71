// Registrations of the memory that one device sends from.
//
// To register memory costs a call to the system and as much as copying some of it, so it pays to
// keep it registered. But nobody tells when a user's array is freed, and other memory may lie at
// the same addresses afterwards, which the device would not see. So what is kept is memory that has
// a number which no other memory gets: arrays of Worker::Allocate (runtime/memory/shared_memory.h),
// and the pages that a server's blocks lie in (runtime/memory/page_pool.h). Each is registered as a
// whole when it is first sent from. All other memory is registered for one message.
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
  // Pages that are kept, at most; beyond that they are registered for one message. Together they
  // may lock half of what the process may lock.
  static constexpr std::size_t kPagesMax = 16384;  // 32 GiB

  explicit RdmaRegions(verbs::Device* device);

  // A registration that covers these bytes, for as long as the pointer is held. Null: they cannot
  // be registered.
  std::shared_ptr<verbs::MemoryRegion> Find(std::span<const std::byte> bytes);
  // Gives up what is kept of arrays that have been freed, or detached from what others see, and of
  // pages whose memory was given back to the system.
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
