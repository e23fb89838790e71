#include "van/rdma/memory/rdma_memory.h"

#include "runtime/base/status_macros.h"

namespace leeway::van {

absl::StatusOr<RdmaMemory> RdmaMemory::New(verbs::Device* device, std::size_t bytes,
                                           bool remote_write) {
  LEEWAY_ASSIGN_OR_RETURN(runtime::MemoryMapping mapping, runtime::MemoryMapping::Private(bytes));
  auto shared = std::make_shared<runtime::MemoryMapping>(std::move(mapping));
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<verbs::MemoryRegion> region,
                          device->Register(shared->data(), bytes, remote_write));
  return RdmaMemory(std::move(shared), std::move(region));
}

}  // namespace leeway::van
