#include "van/rdma/rdma_port.h"

#include <algorithm>
#include <utility>

#include "runtime/base/status_macros.h"

namespace leeway::van {

absl::Status RdmaPort::Add(std::uint32_t queue_pair, RdmaConn* conn) {
  const std::uint64_t posted = slabs_.size() * sizes_.packets;
  const bool fits = posted + sizes_.packets <= device_->info().receive_depth;
  if (conns_.size() >= slabs_.size() && fits) {
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

absl::Status RdmaPort::Repost(std::uint64_t id) { return device_->PostReceive(id, SlotOf(id)); }

}  // namespace leeway::van
