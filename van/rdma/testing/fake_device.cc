#include "van/rdma/testing/fake_device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace leeway::van::verbs {
namespace {

using Lock = FakeFabric::State::Lock;

// Local and remote keys differ, so that using one for the other is detected.
constexpr std::uint32_t LocalKey(std::uint32_t key) { return 2 * key; }
constexpr std::uint32_t RemoteKey(std::uint32_t key) { return 2 * key + 1; }

class FakeRegion final : public MemoryRegion {
 public:
  FakeRegion(std::shared_ptr<FakeFabric::State> fabric, FakeDevice* device, std::uint32_t key)
      : fabric_(std::move(fabric)), device_(device), key_(key) {}
  ~FakeRegion() override {
    const Lock lock(fabric_->mutex);
    device_->Deregister(key_);
  }
  std::uint32_t local_key() const override { return LocalKey(key_); }
  std::uint32_t remote_key() const override { return RemoteKey(key_); }

 private:
  const std::shared_ptr<FakeFabric::State> fabric_;
  FakeDevice* const device_;
  const std::uint32_t key_;
};

}  // namespace

FakeDevice::~FakeDevice() {
  if (!regions_.empty()) {
    std::fprintf(stderr, "fake verbs: %zu memory regions of %s outlive their Verbs\n",
                 regions_.size(), info_.name.c_str());
    std::abort();
  }
  fabric_->counters.receives -= receives_outstanding_;
}

// ---- memory ----

absl::StatusOr<std::unique_ptr<MemoryRegion>> FakeDevice::Register(std::byte* data,
                                                                   std::size_t bytes,
                                                                   bool remote_write) {
  const Lock lock(fabric_->mutex);
  if (lost) return absl::UnavailableError(absl::StrCat("device ", info_.name, " was lost"));
  std::uint64_t registered = bytes;
  for (const auto& device : owner_->all_devices()) registered += device->registered_bytes();
  const FakeFaults& faults = fabric_->faults;
  if (registered > faults.registered_bytes_max || fabric_->Draw(faults.refuse_register_rate) ||
      (remote_write && fabric_->Draw(faults.refuse_remote_rate))) {
    ++fabric_->counters.refused_registrations;
    return absl::ResourceExhaustedError("no more memory may be locked (ulimit -l)");
  }
  const std::uint32_t key = fabric_->next_key++;
  regions_[key] = {data, bytes, remote_write};
  ++fabric_->counters.regions;
  ++fabric_->counters.registrations;
  fabric_->counters.registered_bytes += bytes;
  if (remote_write) {
    ++fabric_->counters.remote_regions;
    fabric_->counters.remote_bytes += bytes;
  }
  return std::make_unique<FakeRegion>(fabric_, this, key);
}

void FakeDevice::Deregister(std::uint32_t key) {
  const auto found = regions_.find(key);
  --fabric_->counters.regions;
  fabric_->counters.registered_bytes -= found->second.bytes;
  if (found->second.remote_write) {
    --fabric_->counters.remote_regions;
    fabric_->counters.remote_bytes -= found->second.bytes;
  }
  regions_.erase(found);
}

std::uint64_t FakeDevice::registered_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [key, region] : regions_) bytes += region.bytes;
  return bytes;
}

bool FakeDevice::IsInside(std::uint32_t key, const std::byte* data, std::uint64_t bytes,
                          bool remote_write) const {
  const auto found = regions_.find(key);
  if (found == regions_.end()) return false;
  const Region& region = found->second;
  const auto from = reinterpret_cast<std::uintptr_t>(data);
  const auto begin = reinterpret_cast<std::uintptr_t>(region.data);
  return (region.remote_write || !remote_write) && from >= begin && from - begin <= region.bytes &&
         bytes <= region.bytes - (from - begin);
}

bool FakeDevice::Covers(const Segment& segment) const {
  if (segment.bytes == 0) return true;
  return segment.local_key % 2 == 0 &&
         IsInside(segment.local_key / 2, segment.data, segment.bytes, false);
}

// An empty write needs no key and no address, as on hardware.
bool FakeDevice::Grants(std::uint32_t remote_key, std::uint64_t address,
                        std::uint64_t bytes) const {
  if (bytes == 0) return true;
  return remote_key % 2 == 1 &&
         IsInside(remote_key / 2, reinterpret_cast<const std::byte*>(address), bytes, true);
}

// ---- receives ----

absl::Status FakeDevice::PostReceive(std::uint64_t id, const Segment& segment) {
  const Lock lock(fabric_->mutex);
  if (lost) return absl::UnavailableError(absl::StrCat("device ", info_.name, " was lost"));
  if (receives_outstanding_ >= info_.receive_depth) {
    ++fabric_->counters.overposted;
    return absl::ResourceExhaustedError("the receive queue is full");
  }
  if (fabric_->Draw(fabric_->faults.refuse_receive_rate)) {
    return absl::ResourceExhaustedError("the device takes no receive");
  }
  receives_.push_back({id, segment});
  ++receives_outstanding_;
  ++fabric_->counters.receives;
  owner_->NoteWork();
  return absl::OkStatus();
}

bool FakeDevice::TakeReceive(Receive* receive) {
  if (receives_.empty()) return false;
  *receive = receives_.front();
  receives_.pop_front();
  return true;
}

void FakeDevice::LoseReceives(std::uint64_t count) {
  receives_outstanding_ -= count;
  fabric_->counters.receives -= count;
}

// ---- completions ----

void FakeDevice::Complete(const FakeCompletion& completion) {
  completions_.push_back(completion);
  if (!std::exchange(armed_, false)) return;
  has_news = true;
  owner_->Refresh();
}

void FakeDevice::Purge(const FakePair& pair) {
  std::uint64_t receives = 0;
  for (const FakeCompletion& one : pair.delayed_received)
    receives += one.completion.receive ? 1 : 0;
  std::erase_if(completions_, [&](const FakeCompletion& one) {
    if (one.pair.get() != &pair) return false;
    receives += one.completion.receive ? 1 : 0;
    return true;
  });
  LoseReceives(receives);
  fabric_->counters.lost_receives += receives;
}

std::size_t FakeDevice::Poll(std::span<Completion> completions) {
  const Lock lock(fabric_->mutex);
  has_news = false;
  owner_->BeginProgress();
  fabric_->Progress();
  const std::size_t count = std::min(completions.size(), completions_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const FakeCompletion one = std::move(completions_.front());
    completions_.pop_front();
    completions[i] = one.completion;
    if (!one.completion.receive) {
      one.pair->retired = std::max(one.pair->retired, one.index + 1);
      continue;
    }
    LoseReceives(1);
    if (one.completion.outcome == Outcome::kOk) one.pair->may_post = true;
  }
  return count;
}

// True also if the descriptor would be readable, because then there is something to carry out.
bool FakeDevice::Peek() {
  const Lock lock(fabric_->mutex);
  return !completions_.empty() || owner_->readable();
}

void FakeDevice::Arm() {
  const Lock lock(fabric_->mutex);
  armed_ = true;
}

}  // namespace leeway::van::verbs
