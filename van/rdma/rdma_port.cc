#include "van/rdma/rdma_port.h"

#include "runtime/base/status_macros.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::van {

absl::StatusOr<RdmaMemory> RdmaMemory::New(verbs::Device* device, std::size_t bytes,
                                           bool remote_write) {
  LEEWAY_ASSIGN_OR_RETURN(runtime::MemoryMapping mapping, runtime::MemoryMapping::Private(bytes));
  auto shared = std::make_shared<runtime::MemoryMapping>(std::move(mapping));
  LEEWAY_ASSIGN_OR_RETURN(std::unique_ptr<verbs::MemoryRegion> region,
                          device->Register(shared->data(), bytes, remote_write));
  return RdmaMemory(std::move(shared), std::move(region));
}

RdmaPort::RdmaPort(verbs::Device* device, const RdmaSizes& sizes)
    : device_(device),
      sizes_(sizes),
      pages_max_(static_cast<std::size_t>(std::min<std::uint64_t>(
          kPagesMax, verbs::LockedMemoryLimit() / 2 / runtime::PagePool::kPageBytes))) {}

// ---- receives ----

absl::Status RdmaPort::Add(std::uint32_t queue_pair, RdmaConn* conn) {
  const std::uint64_t posted = slabs_.size() * sizes_.packets;
  if (conns_.size() >= slabs_.size() && posted + sizes_.packets <= device_->info().receive_depth) {
    absl::StatusOr<RdmaMemory> slab = RdmaMemory::New(
        device_, std::size_t{sizes_.packets} * sizes_.slot_bytes, /*remote_write=*/false);
    if (!slab.ok() && slabs_.empty()) return slab.status();
    if (slab.ok()) {
      slabs_.push_back(*std::move(slab));
      for (std::uint64_t i = 0; i < sizes_.packets; ++i) {
        LEEWAY_RETURN_IF_ERROR(Repost((posted + i) | kReceive));
      }
    }
  }
  conns_[queue_pair] = conn;
  return absl::OkStatus();
}

verbs::Segment RdmaPort::SlotOf(std::uint64_t id) const {
  const std::uint64_t slot = id & ~kReceive;
  return slabs_[slot / sizes_.packets].Part(slot % sizes_.packets * sizes_.slot_bytes,
                                            sizes_.slot_bytes);
}

std::span<const std::byte> RdmaPort::Received(const verbs::Completion& completion) const {
  return {SlotOf(completion.id).data, std::min(completion.bytes, sizes_.slot_bytes)};
}

// ---- registrations ----

std::shared_ptr<verbs::MemoryRegion> RdmaPort::RegionOf(std::span<const std::byte> bytes) {
  std::shared_ptr<verbs::MemoryRegion> kept;
  if (const auto place = runtime::SharedMemory::Find(bytes.data(), bytes.size())) {
    const auto [found, added] = arrays_.try_emplace(place->memory->id());
    if (added) {
      found->second = {place->memory, Register({place->memory->data(), place->memory->size()})};
    }
    kept = found->second.region;
  } else if (const auto page = runtime::PagePool::Shared().Find(bytes.data(), bytes.size())) {
    kept = RegionOfPage(*page);
  }
  // The limit may allow these bytes, but not the whole array.
  return kept != nullptr ? kept : Register(bytes);
}

// The piece to send is in use, so the page keeps its memory meanwhile.
std::shared_ptr<verbs::MemoryRegion> RdmaPort::RegionOfPage(
    const runtime::PagePool::Memory& memory) {
  const auto found = pages_.find(memory.page);
  if (found != pages_.end() && found->second.number == memory.number) return found->second.region;
  PurgeRegions();
  if (pages_.size() >= pages_max_) return nullptr;
  KeptPage& page = pages_[memory.page];
  page = {memory.number, Register({memory.page, runtime::PagePool::kPageBytes})};
  return page.region;
}

std::shared_ptr<verbs::MemoryRegion> RdmaPort::Register(std::span<const std::byte> bytes) {
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> region =
      device_->Register(const_cast<std::byte*>(bytes.data()), bytes.size(), /*remote_write=*/false);
  return region.ok() ? *std::move(region) : nullptr;
}

void RdmaPort::PurgeRegions() {
  absl::erase_if(pages_, [](const auto& entry) {
    return !runtime::PagePool::Shared().Has({entry.first, entry.second.number});
  });
  absl::erase_if(arrays_, [](const auto& entry) {
    const std::shared_ptr<runtime::SharedMemory> memory = entry.second.memory.lock();
    return memory == nullptr ||
           !runtime::SharedMemory::Find(memory->data(), memory->size()).has_value();
  });
}

}  // namespace leeway::van
