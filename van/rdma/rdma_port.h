// RdmaPort is a device as one transport uses it: the receives that it posts for all connections,
// the table of connections by queue pair, and the registrations of the memory that it sends from.
// Lives on the transport's loop.
//
// Registering memory costs a system call and as much time as copying some of it, so it pays to keep
// it registered. But nothing tells when a user's array is freed, and other memory may lie at the
// same addresses afterwards without the device noticing. So registrations are kept only for memory
// with an identity that is never used twice: arrays of Worker::Allocate
// (runtime/memory/shared_memory.h), and the pages of a server's blocks
// (runtime/memory/page_pool.h). Each is registered as a whole when it is first sent from. All other
// memory is registered for one message.
#ifndef LEEWAY_VAN_RDMA_RDMA_PORT_H_
#define LEEWAY_VAN_RDMA_RDMA_PORT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/page_pool.h"
#include "runtime/memory/sealed_memory.h"
#include "runtime/memory/shared_memory.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

// Memory of this process that is registered with a device as long as this object exists. The
// mapping may be kept longer.
class RdmaMemory {
 public:
  // Zeroed memory of `bytes` bytes. `remote_write`: peers may write to it. RESOURCE_EXHAUSTED:
  // there is not so much, or the process may lock no more.
  static absl::StatusOr<RdmaMemory> New(verbs::Device* device, std::size_t bytes,
                                        bool remote_write);

  std::byte* data() const { return mapping_->data(); }
  std::size_t size() const { return mapping_->size(); }
  std::uint32_t remote_key() const { return region_->remote_key(); }
  verbs::Segment Part(std::size_t offset, std::size_t bytes) const {
    return {data() + offset, static_cast<std::uint32_t>(bytes), region_->local_key()};
  }
  const std::shared_ptr<runtime::MemoryMapping>& mapping() const { return mapping_; }

 private:
  RdmaMemory(std::shared_ptr<runtime::MemoryMapping> mapping,
             std::unique_ptr<verbs::MemoryRegion> region)
      : mapping_(std::move(mapping)), region_(std::move(region)) {}

  std::shared_ptr<runtime::MemoryMapping> mapping_;
  std::unique_ptr<verbs::MemoryRegion> region_;
};

class RdmaConn;

class RdmaPort {
 public:
  // The bit that is set in the ids of receives.
  static constexpr std::uint64_t kReceive = 1ull << 63;
  // The most pages whose registration is kept; further ones are registered for one message.
  // Together they may lock half of the memory that the process may lock.
  static constexpr std::size_t kPagesMax = 16384;  // 32 GiB

  RdmaPort(verbs::Device* device, const RdmaSizes& sizes);

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
  absl::Status Repost(std::uint64_t id) { return device_->PostReceive(id, SlotOf(id)); }

  // A registration that covers these bytes for as long as the pointer is held. Null: they cannot be
  // registered.
  std::shared_ptr<verbs::MemoryRegion> RegionOf(std::span<const std::byte> bytes);
  // Drops the registrations of arrays that have been freed or detached, and of pages whose memory
  // was given back to the system.
  void PurgeRegions();

 private:
  // Null regions: the memory could not be registered.
  struct KeptArray {
    std::weak_ptr<runtime::SharedMemory> memory;
    std::shared_ptr<verbs::MemoryRegion> region;
  };
  struct KeptPage {
    std::uint64_t number = 0;
    std::shared_ptr<verbs::MemoryRegion> region;
  };

  verbs::Segment SlotOf(std::uint64_t id) const;
  std::shared_ptr<verbs::MemoryRegion> RegionOfPage(const runtime::PagePool::Memory& memory);
  std::shared_ptr<verbs::MemoryRegion> Register(std::span<const std::byte> bytes);

  verbs::Device* const device_;
  const RdmaSizes sizes_;
  std::vector<RdmaMemory> slabs_;  // with `packets` slots each
  absl::flat_hash_map<std::uint32_t, RdmaConn*> conns_;
  const std::size_t pages_max_;
  absl::flat_hash_map<std::byte*, KeptPage> pages_;
  absl::flat_hash_map<std::uint64_t, KeptArray> arrays_;  // by SharedMemory::id
};

// RdmaBusyPoll is the completion queues of a transport, for a thread that is about to block and may
// not own the loop. Any thread; it may outlive the transport.
class RdmaBusyPoll final : public runtime::BusyPollSource {
 public:
  bool Ready() const override {
    const std::lock_guard lock(mutex_);
    return std::any_of(devices_.begin(), devices_.end(),
                       [](verbs::Device* device) { return device->Peek(); });
  }
  // The devices are armed only while a thread blocks: each notification is an interrupt and a
  // system call, which a thread that polls does not need.
  void BeginSleep() override {
    const std::lock_guard lock(mutex_);
    ++sleepers_;
    ArmAll();
  }
  void EndSleep() override {
    const std::lock_guard lock(mutex_);
    --sleepers_;
    has_slept_ = true;
  }

  // For the transport, after it has polled. The loop's thread may have consumed the notification
  // that a blocked thread waits for, so the devices are armed again. True: poll once more before
  // relying on it.
  bool ArmForSleepers() {
    const std::lock_guard lock(mutex_);
    if (sleepers_ > 0) ArmAll();
    return sleepers_ > 0;
  }
  // True if a thread has blocked since the last call: then the descriptor may be readable.
  bool TakeSlept() {
    const std::lock_guard lock(mutex_);
    return std::exchange(has_slept_, false);
  }
  // Sets the devices; to be called with none before they are destroyed.
  void SetDevices(std::span<verbs::Device* const> devices) {
    const std::lock_guard lock(mutex_);
    if (devices_.size() == devices.size()) return;
    devices_.assign(devices.begin(), devices.end());
    if (sleepers_ > 0) ArmAll();
  }

 private:
  void ArmAll() {
    for (verbs::Device* const device : devices_) device->Arm();
  }

  mutable std::mutex mutex_;
  std::vector<verbs::Device*> devices_;
  int sleepers_ = 0;
  bool has_slept_ = true;  // the descriptor has not been read yet
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_PORT_H_
