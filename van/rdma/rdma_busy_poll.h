// The busy-poll source of an rdma transport: completion queues, for a thread that is about to block
// and may not be the one that owns the loop. Any thread; it may outlive the transport.
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
  // Notices are asked for only while a thread blocks: each is an interrupt and a call to the
  // system, which one that polls busily has no use for.
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

  // For the transport. A thread that blocks may have lost its notice to the loop's thread, which
  // has polled meanwhile: then it is asked for again. True: poll once more before you rely on it.
  bool ArmForSleepers() {
    const std::lock_guard lock(mutex_);
    if (sleepers_ > 0) ArmAll();
    return sleepers_ > 0;
  }
  // Whether a thread has blocked since this was last asked: then the descriptor may have something
  // to tell.
  bool TakeSlept() {
    const std::lock_guard lock(mutex_);
    return std::exchange(has_slept_, false);
  }
  // The devices there are now; none before they go.
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
  bool has_slept_ = true;  // nobody has looked yet
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_BUSY_POLL_H_
