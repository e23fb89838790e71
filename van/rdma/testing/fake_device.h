// FakeDevice is a device of a FakeFabric: its memory regions, its receive queue and its completion
// queue.
#ifndef LEEWAY_VAN_RDMA_TESTING_FAKE_DEVICE_H_
#define LEEWAY_VAN_RDMA_TESTING_FAKE_DEVICE_H_

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "van/rdma/testing/fake_state.h"

namespace leeway::van::verbs {

class FakeDevice final : public Device {
 public:
  struct Receive {
    std::uint64_t id = 0;
    Segment segment;
  };

  FakeDevice(std::shared_ptr<FakeFabric::State> fabric, FakeOwner* owner, DeviceInfo info)
      : fabric_(std::move(fabric)), owner_(owner), info_(std::move(info)) {}
  ~FakeDevice() override;

  // Calls of the user; they take the mutex.
  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(std::byte* data, std::size_t bytes,
                                                         bool remote_write) override;
  absl::Status PostReceive(std::uint64_t id, const Segment& segment) override;
  std::size_t Poll(std::span<Completion> completions) override;
  bool Peek() override;
  void Arm() override;

  // Calls of the fabric, under the mutex.
  void Complete(const FakeCompletion& completion);
  // Drops the completions of a queue pair.
  void Purge(const FakePair& pair);
  // Takes the oldest receive; false: none is posted.
  bool TakeReceive(Receive* receive);
  bool Covers(const Segment& segment) const;
  bool Grants(std::uint32_t remote_key, std::uint64_t address, std::uint64_t bytes) const;
  void Deregister(std::uint32_t key);
  std::uint64_t registered_bytes() const;

  bool lost = false;      // lost and not restored
  bool was_used = false;  // used by a connection
  bool has_news = false;  // a completion since it was armed, and no Poll since then

 private:
  struct Region {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool remote_write = false;
  };
  bool IsInside(std::uint32_t key, const std::byte* data, std::uint64_t bytes,
                bool remote_write) const;
  void LoseReceives(std::uint64_t count);

  const std::shared_ptr<FakeFabric::State> fabric_;
  FakeOwner* const owner_;
  const DeviceInfo info_;
  std::map<std::uint32_t, Region> regions_;
  std::deque<Receive> receives_;
  std::uint64_t receives_outstanding_ = 0;  // posted and not polled yet
  std::deque<FakeCompletion> completions_;
  bool armed_ = false;
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_TESTING_FAKE_DEVICE_H_
