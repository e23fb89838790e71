// RdmaPort is a device as one transport uses it: the receives that it posts for all connections,
// and the table of connections by queue pair. Lives on the transport's loop.
#ifndef LEEWAY_VAN_RDMA_RDMA_PORT_H_
#define LEEWAY_VAN_RDMA_RDMA_PORT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "van/rdma/memory/rdma_memory.h"
#include "van/rdma/memory/rdma_regions.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

class RdmaConn;

class RdmaPort {
 public:
  // The bit that is set in the ids of receives.
  static constexpr std::uint64_t kReceive = 1ull << 63;

  RdmaPort(verbs::Device* device, const RdmaSizes& sizes)
      : device_(device), sizes_(sizes), regions_(device) {}

  verbs::Device* device() const { return device_; }
  RdmaRegions& regions() { return regions_; }

  // To be called before the other side of a connection may send. Posts as many more receives as it
  // may have packets under way, as far as the device has room for them; beyond that, connections
  // share receives, and the device makes senders wait.
  absl::Status Add(std::uint32_t queue_pair, RdmaConn* conn);
  void Remove(std::uint32_t queue_pair) { conns_.erase(queue_pair); }
  // Null: the connection has ended.
  RdmaConn* Find(std::uint32_t queue_pair) const {
    const auto found = conns_.find(queue_pair);
    return found == conns_.end() ? nullptr : found->second;
  }

  // The bytes that were received; valid until Repost.
  std::span<const std::byte> Received(const verbs::Completion& completion) const;
  absl::Status Repost(std::uint64_t id);

 private:
  verbs::Segment SlotOf(std::uint64_t id) const;

  verbs::Device* const device_;
  const RdmaSizes sizes_;
  RdmaRegions regions_;
  std::vector<RdmaMemory> slabs_;  // with `packets` slots each
  absl::flat_hash_map<std::uint32_t, RdmaConn*> conns_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_PORT_H_
