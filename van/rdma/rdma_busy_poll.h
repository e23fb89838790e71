// RdmaBusyPoll is the busy-poll source of an rdma transport: its completion queues, for a thread
// that is about to block and may not own the loop. Any thread; it may outlive the transport.
#ifndef LEEWAY_VAN_RDMA_RDMA_BUSY_POLL_H_
#define LEEWAY_VAN_RDMA_RDMA_BUSY_POLL_H_

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "runtime/loop/loop.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van {

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

#endif  // LEEWAY_VAN_RDMA_RDMA_BUSY_POLL_H_
