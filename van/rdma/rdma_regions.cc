#include "van/rdma/rdma_regions.h"

#include <optional>
#include <utility>

#include "absl/status/statusor.h"

namespace leeway::van {

std::shared_ptr<verbs::MemoryRegion> RdmaRegions::Find(std::span<const std::byte> bytes) {
  const std::optional<runtime::SharedMemory::Place> place =
      runtime::SharedMemory::Find(bytes.data(), bytes.size());
  if (!place.has_value()) return Register(bytes);
  const auto [found, added] = kept_.try_emplace(place->memory->id());
  if (added) {
    found->second = {place->memory, Register({place->memory->data(), place->memory->size()})};
  }
  if (found->second.region != nullptr) return found->second.region;
  return Register(bytes);  // less may be locked than all of it
}

std::shared_ptr<verbs::MemoryRegion> RdmaRegions::Register(std::span<const std::byte> bytes) {
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> region =
      device_->Register(const_cast<std::byte*>(bytes.data()), bytes.size(), /*remote_write=*/false);
  return region.ok() ? *std::move(region) : nullptr;
}

void RdmaRegions::Purge() {
  absl::erase_if(kept_, [](const auto& entry) {
    const std::shared_ptr<runtime::SharedMemory> memory = entry.second.memory.lock();
    return memory == nullptr ||
           !runtime::SharedMemory::Find(memory->data(), memory->size()).has_value();
  });
}

}  // namespace leeway::van
