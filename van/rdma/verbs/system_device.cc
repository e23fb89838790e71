#include "van/rdma/verbs/system_device.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::van::verbs {
namespace {

// Connections that the completion queue has room for at first; it doubles when there are more.
constexpr std::uint32_t kFirstConnections = 16;
constexpr std::size_t kPolledAtOnce = 32;

class SystemRegion final : public MemoryRegion {
 public:
  SystemRegion(ibv_mr* region, decltype(&::ibv_dereg_mr) deregister)
      : region_(region, deregister) {}
  std::uint32_t local_key() const override { return region_->lkey; }
  std::uint32_t remote_key() const override { return region_->rkey; }

 private:
  const Owned<ibv_mr> region_;
};

Outcome OutcomeOf(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return Outcome::kOk;
    case IBV_WC_WR_FLUSH_ERR:
      return Outcome::kFlushed;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return Outcome::kRetriesExceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return Outcome::kReceiverNotReady;
    case IBV_WC_REM_ACCESS_ERR:
      return Outcome::kRemoteAccess;
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return Outcome::kRemoteInvalid;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return Outcome::kLocalProtection;
    case IBV_WC_LOC_LEN_ERR:
      return Outcome::kLocalLength;
    default:
      return Outcome::kOther;
  }
}

Completion CompletionOf(const ibv_wc& from) {
  Completion to;
  to.id = from.wr_id;
  to.queue_pair = from.qp_num;
  to.outcome = OutcomeOf(from.status);
  to.vendor_code = from.vendor_err;
  if (from.status != IBV_WC_SUCCESS) return to;
  to.receive = (from.opcode & IBV_WC_RECV) != 0;
  if (to.receive) to.bytes = from.byte_len;
  return to;
}

bool EndsDevice(ibv_event_type type) {
  return type == IBV_EVENT_DEVICE_FATAL || type == IBV_EVENT_CQ_ERR || type == IBV_EVENT_SRQ_ERR;
}

}  // namespace

// ---- making one ----

SystemDevice::SystemDevice(const Library& library, Owned<ibv_context> context,
                           const Options& options)
    : library_(library),
      options_(options),
      context_(std::move(context)),
      domain_(nullptr, library.dealloc_pd),
      channel_(nullptr, library.destroy_comp_channel),
      queue_(nullptr, library.destroy_cq),
      receives_(nullptr, library.destroy_srq),
      inline_bytes_(options.inline_bytes) {}

absl::StatusOr<std::unique_ptr<SystemDevice>> SystemDevice::Open(const Library& library,
                                                                 const rdma_cm_id* id,
                                                                 const Options& options) {
  ibv_device* const device = id->verbs->device;
  Owned<ibv_context> context(library.open_device(device), library.close_device);
  if (context == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot open the rdma device ",
                                               library.get_device_name(device), ": ",
                                               std::strerror(errno)));
  }
  std::unique_ptr<SystemDevice> made(new SystemDevice(library, std::move(context), options));
  LEEWAY_RETURN_IF_ERROR(made->Start());
  return made;
}

absl::Status SystemDevice::Start() {
  info_.name = library_.get_device_name(context_->device);
  if (const int error = library_.query_device(context_.get(), &limits_); error != 0) {
    return Cannot("its limits", error);
  }
  info_.send_depth =
      std::min(options_.send_depth, static_cast<std::uint32_t>(std::max(limits_.max_qp_wr, 1)));
  info_.receive_depth =
      std::min(options_.receive_depth, static_cast<std::uint32_t>(std::max(limits_.max_srq_wr, 1)));
  domain_.reset(library_.alloc_pd(context_.get()));
  if (domain_ == nullptr) return Cannot("a protection domain", errno);
  channel_.reset(library_.create_comp_channel(context_.get()));
  if (channel_ == nullptr) return Cannot("a completion channel", errno);
  for (const int fd : {channel_->fd, context_->async_fd}) {
    if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
      return Cannot("descriptors that do not block", errno);
    }
  }
  for (const int fd : {channel_->fd, context_->async_fd, context_->cmd_fd}) {
    closed_in_children_.emplace_back(fd);
  }
  const std::uint32_t completions = info_.receive_depth + kFirstConnections * info_.send_depth;
  queue_.reset(library_.create_cq(
      context_.get(), std::min(static_cast<int>(completions), std::max(limits_.max_cqe, 1)),
      nullptr, channel_.get(), 0));
  if (queue_ == nullptr) return Cannot("a completion queue", errno);
  ibv_srq_init_attr receives{};
  receives.attr.max_wr = info_.receive_depth;
  receives.attr.max_sge = 1;
  receives_.reset(library_.create_srq(domain_.get(), &receives));
  if (receives_ == nullptr) return Cannot("a shared receive queue", errno);
  return absl::OkStatus();
}

void SystemDevice::LearnPath(const ibv_qp_attr& attributes) {
  if (info_.gid_index >= 0) return;
  info_.mtu_bytes = MtuBytes(attributes.path_mtu);
  if (attributes.ah_attr.is_global != 0) info_.gid_index = attributes.ah_attr.grh.sgid_index;
}

absl::Status SystemDevice::Cannot(const char* what, int error) const {
  // Queues lie in locked memory, too.
  const std::string advice =
      error == ENOMEM
          ? absl::StrCat(" (this process may lock ", LockedMemoryText(LockedMemoryLimit()),
                         ", RLIMIT_MEMLOCK: ", kRaiseLockedMemory, ")")
          : "";
  return absl::UnavailableError(absl::StrCat("the rdma device ", info_.name, " does not give ",
                                             what, ": ", std::strerror(error), advice));
}

// ---- memory ----

absl::StatusOr<std::unique_ptr<MemoryRegion>> SystemDevice::Register(std::byte* data,
                                                                     std::size_t bytes,
                                                                     bool remote_write) {
  const int access = IBV_ACCESS_LOCAL_WRITE | (remote_write ? IBV_ACCESS_REMOTE_WRITE : 0);
  ibv_mr* region = library_.reg_mr(domain_.get(), data, bytes, access);
  // Memory that is read-only for this process can still be sent from.
  if (region == nullptr && errno == EFAULT && !remote_write) {
    region = library_.reg_mr(domain_.get(), data, bytes, /*access=*/0);
  }
  if (region == nullptr) return CannotRegister(bytes, errno);
  return std::make_unique<SystemRegion>(region, library_.dereg_mr);
}

absl::Status SystemDevice::CannotRegister(std::size_t bytes, int error) const {
  const std::string cannot =
      absl::StrCat("cannot register ", bytes, " bytes with the rdma device ", info_.name, ": ");
  if (error != ENOMEM && error != EAGAIN) {
    return absl::UnavailableError(absl::StrCat(cannot, std::strerror(error)));
  }
  const std::uint64_t limit = LockedMemoryLimit();
  if (limit == kNoLimit) {
    return absl::ResourceExhaustedError(absl::StrCat(cannot, "there is no memory, or it has its ",
                                                     limits_.max_mr, " regions already"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(cannot, "this process may lock ", LockedMemoryText(limit),
                   " of memory (RLIMIT_MEMLOCK); ", kRaiseLockedMemory));
}

// ---- queues ----

absl::Status SystemDevice::PostReceive(std::uint64_t id, const Segment& segment) {
  ibv_sge part{reinterpret_cast<std::uintptr_t>(segment.data), segment.bytes, segment.local_key};
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &part;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  const int error = ibv_post_srq_recv(receives_.get(), &request, &refused);
  if (error == 0) return absl::OkStatus();
  if (error == ENOMEM) {
    return absl::ResourceExhaustedError(absl::StrCat("the receive queue of the rdma device ",
                                                     info_.name, " is full (", info_.receive_depth,
                                                     ")"));
  }
  return Cannot("a receive", error);
}

std::size_t SystemDevice::Poll(std::span<Completion> completions) {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  if (peeked_.has_value() && !completions.empty()) {
    completions[count++] = CompletionOf(*std::exchange(peeked_, std::nullopt));
  }
  while (count < completions.size()) {
    std::array<ibv_wc, kPolledAtOnce> polled;
    const std::size_t wanted = std::min(polled.size(), completions.size() - count);
    const int got = ibv_poll_cq(queue_.get(), static_cast<int>(wanted), polled.data());
    for (int i = 0; i < got; ++i) completions[count++] = CompletionOf(polled[i]);
    if (got < static_cast<int>(wanted)) {
      gone_ = 0;
      break;
    }
  }
  if (count > 0) found_since_armed_ = true;
  return count;
}

bool SystemDevice::Peek() {
  const std::lock_guard lock(mutex_);
  if (peeked_.has_value()) return true;
  ibv_wc first;
  if (ibv_poll_cq(queue_.get(), 1, &first) != 1) return false;
  peeked_ = first;
  return true;
}

// One call gives one notice. While no completion can have come since the last call, there is
// nothing to do.
void SystemDevice::Arm() {
  const std::lock_guard lock(mutex_);
  if (armed_ && (found_since_armed_ || peeked_.has_value())) TakeNoticesLocked();
  if (armed_) return;
  armed_ = ibv_req_notify_cq(queue_.get(), 0) == 0;
  found_since_armed_ = false;
}

void SystemDevice::TakeNotices() {
  const std::lock_guard lock(mutex_);
  TakeNoticesLocked();
}

void SystemDevice::TakeNoticesLocked() {
  armed_ = false;
  unsigned count = 0;
  ibv_cq* queue = nullptr;
  void* unused = nullptr;
  while (library_.get_cq_event(channel_.get(), &queue, &unused) == 0) ++count;
  if (count > 0) library_.ack_cq_events(queue_.get(), count);
}

// ---- connections ----

// Overrunning the completion queue would end it, and with it all connections of the device.
absl::Status SystemDevice::MakeRoom() {
  const std::uint64_t needed =
      info_.receive_depth + (std::uint64_t{connections_} + gone_ + 1) * info_.send_depth;
  const auto has = static_cast<std::uint64_t>(queue_->cqe);
  if (needed <= has) return absl::OkStatus();
  const std::uint64_t most = static_cast<std::uint64_t>(std::max(limits_.max_cqe, 1));
  if (needed > most) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the rdma device ", info_.name, " has completion queues of ", most,
                     " at most, and ", connections_, " connections fill one"));
  }
  const int error =
      library_.resize_cq(queue_.get(), static_cast<int>(std::min(most, std::max(needed, 2 * has))));
  return error == 0 ? absl::OkStatus() : Cannot("a larger completion queue", error);
}

absl::StatusOr<ibv_qp*> SystemDevice::NewQueuePair() {
  LEEWAY_RETURN_IF_ERROR(MakeRoom());
  ibv_qp_init_attr wanted{};
  wanted.send_cq = queue_.get();
  wanted.recv_cq = queue_.get();
  wanted.srq = receives_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 0;
  while (true) {
    wanted.cap = {};
    wanted.cap.max_send_wr = info_.send_depth;
    wanted.cap.max_send_sge =
        static_cast<std::uint32_t>(std::min<int>(kSegmentsMax, limits_.max_sge));
    wanted.cap.max_inline_data = inline_bytes_;
    ibv_qp* const made = library_.create_qp(domain_.get(), &wanted);
    if (made != nullptr) {
      ++connections_;
      return made;
    }
    // Devices do not report how many bytes can be inline, so smaller values are tried.
    if (errno != EINVAL || inline_bytes_ == 0) return Cannot("a queue pair", errno);
    inline_bytes_ /= 2;
  }
}

void SystemDevice::DestroyQueuePair(ibv_qp* queue_pair) {
  library_.destroy_qp(queue_pair);
  --connections_;
  ++gone_;
}

absl::Status SystemDevice::ReadNews() {
  absl::Status why;
  ibv_async_event event;
  while (library_.get_async_event(context_.get(), &event) == 0) {
    const ibv_event_type type = event.event_type;
    library_.ack_async_event(&event);
    if (!EndsDevice(type) || std::exchange(lost_, true)) continue;
    why = absl::UnavailableError(
        absl::StrCat("the rdma device ", info_.name, " failed: ", library_.event_type_str(type)));
  }
  return why;
}

}  // namespace leeway::van::verbs
