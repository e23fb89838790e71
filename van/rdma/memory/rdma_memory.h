// RdmaMemory is memory of this process that is registered with an rdma device.
#ifndef LEEWAY_VAN_RDMA_MEMORY_RDMA_MEMORY_H_
#define LEEWAY_VAN_RDMA_MEMORY_RDMA_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "runtime/memory/sealed_memory.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

// Owns the memory, which is registered as long as this object exists. The mapping may be kept
// longer.
class RdmaMemory {
 public:
  // Zeroed memory of `bytes` bytes. `remote_write`: peers may write to it. RESOURCE_EXHAUSTED:
  // there is not so much, or the process may lock no more.
  static absl::StatusOr<RdmaMemory> New(verbs::Device* device, std::size_t bytes,
                                        bool remote_write);

  std::byte* data() const { return mapping_->data(); }
  std::size_t size() const { return mapping_->size(); }
  std::uint32_t local_key() const { return region_->local_key(); }
  std::uint32_t remote_key() const { return region_->remote_key(); }
  verbs::Segment Part(std::size_t offset, std::size_t bytes) const {
    return {data() + offset, static_cast<std::uint32_t>(bytes), local_key()};
  }
  const std::shared_ptr<runtime::MemoryMapping>& mapping() const { return mapping_; }

 private:
  RdmaMemory(std::shared_ptr<runtime::MemoryMapping> mapping,
             std::unique_ptr<verbs::MemoryRegion> region)
      : mapping_(std::move(mapping)), region_(std::move(region)) {}

  std::shared_ptr<runtime::MemoryMapping> mapping_;
  std::unique_ptr<verbs::MemoryRegion> region_;
};

// Sizes of the memory that connections use. All in bytes but `packets` and `arena_units`.
struct RdmaSizes {
  std::uint32_t slot_bytes = 16 << 10;  // largest packet
  std::uint32_t packets = 32;           // packets that a peer may have under way
  std::uint32_t arena_units = 4096;     // units (16 MiB) that a peer with large frames may write to
  // Shorter frames are copied into packets, which costs less than registering them.
  std::uint64_t write_bytes_min = 32 << 10;
  // Memory for shorter answers is not posted, because registering it costs more than a copy.
  std::uint64_t posted_bytes_min = 64 << 10;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_MEMORY_RDMA_MEMORY_H_
