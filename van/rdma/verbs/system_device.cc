#include "van/rdma/verbs/system_device.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/status_macros.h"

namespace leeway::van::verbs {
namespace {

// All completions that may be outstanding have to fit: a queue that overflows is of no more use.
constexpr int kCompletionsMax = 32767;

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

void MakeNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

absl::Status Cannot(absl::string_view what) {
  const int error = errno;
  if (error == ENOMEM || error == EPERM) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot ", what, ": ", MemlockAdvice()));
  }
  return absl::UnavailableError(absl::StrCat("cannot ", what, ": ", std::strerror(error)));
}

class SystemRegion final : public MemoryRegion {
 public:
  SystemRegion(const Library* library, ibv_mr* region) : library_(library), region_(region) {}
  ~SystemRegion() override { library_->dereg_mr(region_); }
  std::uint32_t local_key() const override { return region_->lkey; }
  std::uint32_t remote_key() const override { return region_->rkey; }

 private:
  const Library* const library_;
  ibv_mr* const region_;
};

}  // namespace

std::string MemlockAdvice() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return "there is no more memory to lock";
  return absl::StrCat("no more memory may be locked (the limit is ", limit.rlim_cur >> 10,
                      " KiB): ulimit -l unlimited, or LimitMEMLOCK=infinity in the service's file");
}

absl::StatusOr<std::unique_ptr<SystemDevice>> SystemDevice::Open(const Library* library,
                                                                 rdma_cm_id* id,
                                                                 const Options& options, int epoll,
                                                                 std::uint64_t tag) {
  std::unique_ptr<SystemDevice> device(new SystemDevice(library, id->verbs));
  LEEWAY_RETURN_IF_ERROR(device->Create(id, options));
  LEEWAY_RETURN_IF_ERROR(device->Watch(epoll, tag));
  return device;
}

absl::Status SystemDevice::Create(rdma_cm_id* id, const Options& options) {
  ibv_device_attr limits{};
  if (library_->query_device(context_, &limits) != 0) return Cannot("ask an rdma device");
  Describe(id);
  inline_bytes_ = options.inline_bytes;
  info_.send_depth =
      std::min<std::uint32_t>(options.send_depth, static_cast<std::uint32_t>(limits.max_qp_wr));
  info_.receive_depth =
      std::min<std::uint32_t>(options.receive_depth, static_cast<std::uint32_t>(limits.max_srq_wr));
  domain_ = library_->alloc_pd(context_);
  if (domain_ == nullptr) return Cannot(absl::StrCat("use rdma device ", info_.name));
  channel_ = library_->create_comp_channel(context_);
  if (channel_ == nullptr) return Cannot("make a completion channel");
  MakeNonBlocking(channel_->fd);
  MakeNonBlocking(context_->async_fd);
  queue_ = library_->create_cq(context_, std::min(kCompletionsMax, limits.max_cqe), nullptr,
                               channel_, 0);
  if (queue_ == nullptr) return Cannot("make a completion queue");
  ibv_srq_init_attr wanted{};
  wanted.attr.max_wr = info_.receive_depth;
  wanted.attr.max_sge = 1;
  receives_ = library_->create_srq(domain_, &wanted);
  return receives_ == nullptr ? Cannot("make a shared receive queue") : absl::OkStatus();
}

absl::Status SystemDevice::Watch(int epoll, std::uint64_t tag) {
  epoll_ = epoll;
  for (const auto& [fd, of] :
       {std::pair(channel_->fd, tag), std::pair(context_->async_fd, tag + 1)}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = of;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return Cannot("watch an rdma device");
  }
  return absl::OkStatus();
}

SystemDevice::~SystemDevice() {
  if (epoll_ >= 0) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, channel_->fd, nullptr);
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, context_->async_fd, nullptr);
  }
  if (receives_ != nullptr) library_->destroy_srq(receives_);
  if (queue_ != nullptr) library_->destroy_cq(queue_);
  if (channel_ != nullptr) library_->destroy_comp_channel(channel_);
  if (domain_ != nullptr) library_->dealloc_pd(domain_);
}

void SystemDevice::Describe(rdma_cm_id* id) {
  info_.name = library_->get_device_name(context_->device);
  info_.port = id->port_num;
  ibv_port_attr port{};
  if (library_->query_port(context_, id->port_num, &port) == 0) {
    info_.link = port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
    info_.mtu_bytes = 128u << port.active_mtu;
  }
  const ibv_gid& gid = id->route.addr.addr.ibaddr.sgid;
  char text[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  info_.gid = text;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid other{};
    if (library_->query_gid(context_, id->port_num, i, &other) != 0) continue;
    // Where one address has several, RoCE v2's is the later one, and is what rdma_cm takes.
    if (std::memcmp(other.raw, gid.raw, sizeof(gid.raw)) == 0) info_.gid_index = i;
  }
}

absl::Status SystemDevice::CreateQueuePair(rdma_cm_id* id) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = queue_;
  wanted.srq = receives_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = info_.send_depth;
  wanted.cap.max_send_sge = kSegmentsMax;
  wanted.cap.max_inline_data = inline_bytes_;
  if (library_->create_qp(id, domain_, &wanted) == 0) {
    inline_bytes_ = std::min(inline_bytes_, wanted.cap.max_inline_data);
    return absl::OkStatus();
  }
  // Some devices have no room for inline data.
  wanted.cap.max_inline_data = 0;
  inline_bytes_ = 0;
  return library_->create_qp(id, domain_, &wanted) == 0 ? absl::OkStatus()
                                                        : Cannot("make a queue pair");
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SystemDevice::Register(std::byte* data,
                                                                     std::size_t bytes,
                                                                     bool remote_write) {
  // The right to write locally is that of receives and of remote writes; memory that may only be
  // read can be registered without it.
  const int access =
      remote_write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_LOCAL_WRITE;
  ibv_mr* region = library_->reg_mr(domain_, data, bytes, access);
  if (region == nullptr && !remote_write && (errno == EFAULT || errno == EACCES)) {
    region = library_->reg_mr(domain_, data, bytes, 0);
  }
  if (region == nullptr) return Cannot(absl::StrCat("register ", bytes, " bytes"));
  return std::make_unique<SystemRegion>(library_, region);
}

absl::Status SystemDevice::PostReceive(std::uint64_t id, const Segment& segment) {
  ibv_sge place{};
  place.addr = reinterpret_cast<std::uint64_t>(segment.data);
  place.length = segment.bytes;
  place.lkey = segment.local_key;
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &place;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(receives_, &request, &bad);
  if (error == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot post a receive: ", std::strerror(error)));
}

std::size_t SystemDevice::Poll(std::span<Completion> completions) {
  constexpr std::size_t kAtOnce = 32;
  ibv_wc found[kAtOnce];
  const int most = static_cast<int>(std::min(kAtOnce, completions.size()));
  const int count = ibv_poll_cq(queue_, most, found);
  for (int i = 0; i < count; ++i) {
    Completion& completion = completions[static_cast<std::size_t>(i)];
    completion.id = found[i].wr_id;
    completion.queue_pair = found[i].qp_num;
    completion.outcome = OutcomeOf(found[i].status);
    completion.vendor_code = found[i].vendor_err;
    const bool ok = completion.outcome == Outcome::kOk;
    completion.receive = ok && (found[i].opcode & IBV_WC_RECV) != 0;
    completion.bytes = completion.receive ? found[i].byte_len : 0;
  }
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void SystemDevice::Arm() {
  if (std::exchange(readable_, false)) {
    armed_ = false;
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    unsigned events = 0;
    while (library_->get_cq_event(channel_, &queue, &context) == 0) ++events;
    if (events > 0) library_->ack_cq_events(queue_, events);
  }
  if (!std::exchange(armed_, true)) ibv_req_notify_cq(queue_, 0);
}

bool SystemDevice::IsLost() {
  bool lost = false;
  ibv_async_event event{};
  while (library_->get_async_event(context_, &event) == 0) {
    lost = lost || event.event_type == IBV_EVENT_DEVICE_FATAL ||
           event.event_type == IBV_EVENT_CQ_ERR || event.event_type == IBV_EVENT_SRQ_ERR;
    library_->ack_async_event(&event);
  }
  return lost;
}

}  // namespace leeway::van::verbs
