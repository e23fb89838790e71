// A device of the system as one Verbs uses it: a protection domain, a completion queue with its
// channel, and a shared receive queue.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_DEVICE_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_DEVICE_H_

#include <memory>

#include "van/rdma/verbs/library.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

class SystemDevice final : public Device {
 public:
  // Of the device that `id` goes out on; `epoll` is to watch its descriptors, under `tag` for
  // completions and `tag` + 1 for what befalls the device.
  static absl::StatusOr<std::unique_ptr<SystemDevice>> Open(const Library* library, rdma_cm_id* id,
                                                            const Options& options, int epoll,
                                                            std::uint64_t tag);
  ~SystemDevice() override;

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(std::byte* data, std::size_t bytes,
                                                         bool remote_write) override;
  absl::Status PostReceive(std::uint64_t id, const Segment& segment) override;
  std::size_t Poll(std::span<Completion> completions) override;
  void Arm() override;

  const ibv_context* context() const { return context_; }
  // A queue pair on it.
  absl::Status CreateQueuePair(rdma_cm_id* id);
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  // The descriptor of completions is readable.
  void OnReadable() { readable_ = true; }
  // Whether the device has gone, by what has befallen it since; without blocking.
  bool IsLost();

 private:
  SystemDevice(const Library* library, ibv_context* context)
      : library_(library), context_(context) {}
  absl::Status Create(rdma_cm_id* id, const Options& options);
  absl::Status Watch(int epoll, std::uint64_t tag);
  void Describe(rdma_cm_id* id);

  const Library* const library_;
  ibv_context* const context_;  // librdmacm's
  DeviceInfo info_;
  std::uint32_t inline_bytes_ = 0;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  ibv_srq* receives_ = nullptr;
  int epoll_ = -1;
  bool armed_ = false;
  bool readable_ = false;
};

// "the limit on locked memory is 8 MiB …": what to do where memory cannot be registered.
std::string MemlockAdvice();

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_DEVICE_H_
