// SystemDevice is a device of this machine as one Verbs object uses it: a context of its own, with
// one protection domain, completion queue and shared receive queue for all its connections.
//
// The context is not the one that librdmacm opens for the whole process, so that each loop reads
// the asynchronous events of its own context and takes none from other loops.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_DEVICE_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_DEVICE_H_

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/base/fork.h"
#include "van/rdma/verbs/library.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

// An object that the library made, with the function that destroys it.
template <class T>
using Owned = std::unique_ptr<T, int (*)(T*)>;

class SystemDevice final : public Device {
 public:
  // Opens the device that rdma_cm has chosen for `id`. `library` outlives it.
  static absl::StatusOr<std::unique_ptr<SystemDevice>> Open(const Library& library,
                                                            const rdma_cm_id* id,
                                                            const Options& options);

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(std::byte* data, std::size_t bytes,
                                                         bool remote_write) override;
  absl::Status PostReceive(std::uint64_t id, const Segment& segment) override;
  std::size_t Poll(std::span<Completion> completions) override;
  bool Peek() override;
  void Arm() override;

  bool IsThatOf(const rdma_cm_id* id) const { return context_->device == id->verbs->device; }
  // Learns from the path of the first connection: the GID that it starts from, and the MTU.
  void LearnPath(const ibv_qp_attr& attributes);

  // Makes a queue pair, in its initial state, with room for its completions. RESOURCE_EXHAUSTED:
  // there is no room.
  absl::StatusOr<ibv_qp*> NewQueuePair();
  void DestroyQueuePair(ibv_qp* queue_pair);
  // Sends and writes of up to this many bytes may be inline.
  std::uint32_t inline_bytes() const { return inline_bytes_; }

  // Readable when a completion has come after Arm, until TakeNotices.
  int notices_fd() const { return channel_->fd; }
  void TakeNotices();
  // Readable when there are asynchronous events of the device.
  int news_fd() const { return context_->async_fd; }
  // Handles asynchronous events. Not OK: the reason for which the device cannot be used any more;
  // returned once.
  absl::Status ReadNews();
  // For losses that other code notices.
  bool lost() const { return lost_; }
  void SetLost() { lost_ = true; }

 private:
  SystemDevice(const Library& library, Owned<ibv_context> context, const Options& options);
  absl::Status Start();
  void TakeNoticesLocked();
  absl::Status MakeRoom();
  absl::Status Cannot(const char* what, int error) const;
  absl::Status CannotRegister(std::size_t bytes, int error) const;

  const Library& library_;
  const Options options_;
  DeviceInfo info_;
  ibv_device_attr limits_{};
  // Destroyed in reverse order.
  const Owned<ibv_context> context_;
  Owned<ibv_pd> domain_;
  Owned<ibv_comp_channel> channel_;
  std::deque<runtime::ClosedInChildren> closed_in_children_;
  Owned<ibv_cq> queue_;
  Owned<ibv_srq> receives_;

  std::uint32_t inline_bytes_;
  // For the number of completions that may come: those of receives, and those of all sends of the
  // connections that exist or have ended since the queue was last seen empty.
  std::uint32_t connections_ = 0;
  std::uint32_t gone_ = 0;

  // Guards the queue's completions and notices, which other threads than the loop's may access.
  std::mutex mutex_;
  std::optional<ibv_wc> peeked_;  // the first completion, if Peek has taken it from the queue
  bool armed_ = false;
  bool found_since_armed_ = false;

  bool lost_ = false;
};

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_DEVICE_H_
