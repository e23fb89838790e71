// Registrations of the memory that one device sends from.
//
// To register memory costs a call to the system and as much as copying some of it, so it pays to
// keep it registered. But nobody tells when a user's array is freed, and other memory may lie at
// the same addresses afterwards, which the device would not see. So what is kept is what tells of
// its end: arrays of Worker::Allocate (runtime/shared_memory.h), each registered as a whole when it
// is first sent from, under an id that no other memory gets. All other memory is registered for one
// message.
//
// Lives on the transport's loop.
#ifndef LEEWAY_VAN_RDMA_RDMA_REGIONS_H_
#define LEEWAY_VAN_RDMA_RDMA_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "runtime/shared_memory.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

class RdmaRegions {
 public:
  explicit RdmaRegions(verbs::Device* device) : device_(device) {}

  // A registration that covers these bytes, for as long as the pointer is held. Null: they cannot
  // be registered.
  std::shared_ptr<verbs::MemoryRegion> Find(std::span<const std::byte> bytes);
  // Gives up what is kept of arrays that have been freed, or detached from what others see.
  void Purge();

 private:
  struct Kept {
    std::weak_ptr<runtime::SharedMemory> memory;
    std::shared_ptr<verbs::MemoryRegion> region;  // null: it could not be registered
  };

  std::shared_ptr<verbs::MemoryRegion> Register(std::span<const std::byte> bytes);

  verbs::Device* const device_;
  absl::flat_hash_map<std::uint64_t, Kept> kept_;  // by SharedMemory::id
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_REGIONS_H_
