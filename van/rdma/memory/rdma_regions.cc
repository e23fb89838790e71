#include "van/rdma/memory/rdma_regions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "van/rdma/verbs/locked_memory.h"

namespace leeway::van {

RdmaRegions::RdmaRegions(verbs::Device* device)
    : device_(device),
      pages_max_(static_cast<std::size_t>(std::min<std::uint64_t>(
          kPagesMax, verbs::LockedMemoryLimit() / 2 / runtime::PagePool::kPageBytes))) {}

std::shared_ptr<verbs::MemoryRegion> RdmaRegions::Find(std::span<const std::byte> bytes) {
  std::shared_ptr<verbs::MemoryRegion> kept;
  if (const auto place = runtime::SharedMemory::Find(bytes.data(), bytes.size())) {
    kept = OfArray(*place);
  } else if (const auto page = runtime::PagePool::Shared().Find(bytes.data(), bytes.size())) {
    kept = OfPage(*page);
  }
  if (kept != nullptr) return kept;
  return Register(bytes);  // the limit may allow these bytes, but not the whole array
}

std::shared_ptr<verbs::MemoryRegion> RdmaRegions::OfArray(
    const runtime::SharedMemory::Location& place) {
  const auto [found, added] = kept_.try_emplace(place.memory->id());
  if (added) {
    found->second = {place.memory, Register({place.memory->data(), place.memory->size()})};
  }
  return found->second.region;
}

// The piece to send is in use, so the page keeps its memory meanwhile.
std::shared_ptr<verbs::MemoryRegion> RdmaRegions::OfPage(const runtime::PagePool::Memory& memory) {
  const auto found = pages_.find(memory.page);
  if (found != pages_.end() && found->second.number == memory.number) return found->second.region;
  Purge();
  if (pages_.size() >= pages_max_) return nullptr;
  KeptPage& page = pages_[memory.page];
  page = {memory.number, Register({memory.page, runtime::PagePool::kPageBytes})};
  return page.region;
}

std::shared_ptr<verbs::MemoryRegion> RdmaRegions::Register(std::span<const std::byte> bytes) {
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> region =
      device_->Register(const_cast<std::byte*>(bytes.data()), bytes.size(), /*remote_write=*/false);
  return region.ok() ? *std::move(region) : nullptr;
}

void RdmaRegions::Purge() {
  absl::erase_if(pages_, [](const auto& entry) {
    return !runtime::PagePool::Shared().Has({entry.first, entry.second.number});
  });
  absl::erase_if(kept_, [](const auto& entry) {
    const std::shared_ptr<runtime::SharedMemory> memory = entry.second.memory.lock();
    return memory == nullptr ||
           !runtime::SharedMemory::Find(memory->data(), memory->size()).has_value();
  });
}

}  // namespace leeway::van
