#include "van/rdma/verbs/system_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/status_macros.h"
#include "van/address/tcp_address.h"
#include "van/little_endian.h"
#include "van/rdma/verbs/inventory.h"
#include "van/rdma/verbs/system_verbs.h"

namespace leeway::van::verbs {
namespace {

// How often a queue pair repeats what is not acknowledged. The maximum would be 7, but soft-RoCE
// takes that as without end.
constexpr std::uint8_t kRetries = 6;
// Without end: credits make sure that there are receives.
constexpr std::uint8_t kReceiverRetries = 7;
// 0.64 ms until a send that met no receive is repeated. rdma_cm's default is 655 ms.
constexpr std::uint8_t kReceiverTimer = 12;
// RDMA reads are not used, but some devices refuse connections without any.
constexpr std::uint8_t kReads = 1;
constexpr std::size_t kPostedAtOnce = 16;
// Reasons of rejections (InfiniBand's IB_CM_REJ_…).
constexpr int kNobodyListens = 8;
constexpr int kItRefuses = 28;

// The acknowledge timeout of a queue pair is 4.096 us * 2^timeout. The queue pair fails when it has
// passed once more often than there are retries.
std::uint8_t AckTimeout(std::uint32_t whole_ms) {
  const double each_us = whole_ms * 1000.0 / (kRetries + 1);
  return static_cast<std::uint8_t>(std::clamp(std::lround(std::log2(each_us / 4.096)), 1L, 31L));
}

std::string Advice(int error) {
  switch (error) {
    case ENODEV:
    case EADDRNOTAVAIL:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "; no rdma device of this machine has a way there: check LEEWAY_INTERFACE, "
             "LEEWAY_HOST and `rdma link`";
    case ETIMEDOUT:
      return "; no answer from there: is that machine up, with an rdma device on that network?";
    case EMFILE:
    case ENFILE:
      return absl::StrCat("; ", runtime::OutOfDescriptors(error).message());
    default:
      return "";
  }
}

std::string Rejection(int reason) {
  if (reason == kNobodyListens) return "connection refused: no process listens there over rdma";
  if (reason == kItRefuses) return "connection refused by the process that listens there";
  return absl::StrCat("rejected, for reason ", reason, " of InfiniBand's");
}

constexpr std::uint32_t kMtuBytesMin = 256, kMtuBytesMax = 4096;

ibv_mtu MtuOf(std::uint32_t bytes) {
  int mtu = IBV_MTU_256;
  while (mtu < IBV_MTU_4096 && MtuBytes(static_cast<ibv_mtu>(mtu)) < bytes) ++mtu;
  return static_cast<ibv_mtu>(mtu);
}

// The address that a path starts from, at any port; without family if the path has none.
absl::StatusOr<sockaddr_storage> SourceAddress(const Path& path, const sockaddr_storage& to) {
  sockaddr_storage from{};
  if (!path.chooses() || to.ss_family != AF_INET) return from;
  const std::string source = SourceOf(TakeInventory(), path);
  if (source.empty()) return from;
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToConnect(source));
  return SocketAddressOf(host, 0);
}

// A linked list of requests, as the library wants it.
class Chain {
 public:
  void Add(const SendRequest& request, std::uint32_t inline_bytes) {
    ibv_send_wr& out = requests_[count_];
    ibv_sge* const parts = parts_[count_].data();
    std::uint64_t bytes = 0;
    out = {};
    out.sg_list = parts;
    for (const Segment& segment : request.segments) {
      parts[out.num_sge++] = {reinterpret_cast<std::uintptr_t>(segment.data), segment.bytes,
                              segment.local_key};
      bytes += segment.bytes;
    }
    out.wr_id = request.id;
    out.opcode = request.opcode == Opcode::kSend ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
    out.send_flags = (request.signalled ? unsigned{IBV_SEND_SIGNALED} : 0) |
                     (bytes <= inline_bytes ? unsigned{IBV_SEND_INLINE} : 0);
    out.wr.rdma.remote_addr = request.remote_address;
    out.wr.rdma.rkey = request.remote_key;
    if (count_ > 0) requests_[count_ - 1].next = &out;
    ++count_;
  }
  bool full() const { return count_ == requests_.size(); }
  bool empty() const { return count_ == 0; }
  void Clear() { count_ = 0; }
  ibv_send_wr* first() { return requests_.data(); }

 private:
  std::array<ibv_send_wr, kPostedAtOnce> requests_;
  std::array<std::array<ibv_sge, kSegmentsMax>, kPostedAtOnce> parts_;
  std::size_t count_ = 0;
};

// "10.0.0.7:40123".
std::string AddressText(const sockaddr* address) {
  sockaddr_storage storage{};
  const bool v6 = address->sa_family == AF_INET6;
  std::memcpy(&storage, address, v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  return std::string(absl::StripPrefix(TcpName(storage), "tcp://"));
}

}  // namespace

// ---- coming and going ----

SystemConnection::SystemConnection(SystemVerbs* owner, Owned<rdma_cm_id> id, std::string peer,
                                   bool dialled)
    : owner_(owner),
      library_(owner->library()),
      id_(std::move(id)),
      peer_(std::move(peer)),
      dialled_(dialled),
      mtu_bytes_(owner->path().mtu_bytes) {
  id_->context = this;
}

absl::StatusOr<std::unique_ptr<SystemConnection>> SystemConnection::Dial(
    SystemVerbs* owner, rdma_event_channel* channel, const sockaddr_storage& address) {
  const Library& library = owner->library();
  sockaddr_storage to = address;
  auto* const there = reinterpret_cast<sockaddr*>(&to);
  std::string peer = AddressText(there);
  rdma_cm_id* id = nullptr;
  if (library.create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0) {
    const int error = errno;
    return absl::UnavailableError(absl::StrCat(
        "cannot connect to ", peer, " over rdma: ", std::strerror(error), Advice(error)));
  }
  std::unique_ptr<SystemConnection> made(
      new SystemConnection(owner, {id, library.destroy_id}, std::move(peer), /*dialled=*/true));
  const auto timeout_ms = static_cast<int>(owner->options().timeout_ms);
  absl::StatusOr<sockaddr_storage> from = SourceAddress(owner->path(), address);
  if (!from.ok()) return from.status();
  const bool chosen = from->ss_family == address.ss_family;
  if (library.resolve_addr(id, chosen ? reinterpret_cast<sockaddr*>(&*from) : nullptr, there,
                           timeout_ms) != 0) {
    return made->Cannot("resolving its address", errno);
  }
  return made;
}

absl::StatusOr<std::unique_ptr<SystemConnection>> SystemConnection::Requested(
    SystemVerbs* owner, rdma_cm_id* id, std::span<const std::byte> private_data) {
  Owned<rdma_cm_id> owned(id, owner->library().destroy_id);
  std::string peer = AddressText(rdma_get_peer_addr(id));
  std::unique_ptr<SystemConnection> made(
      new SystemConnection(owner, std::move(owned), std::move(peer), /*dialled=*/false));
  LEEWAY_RETURN_IF_ERROR(made->MakeQueuePair());
  made->AgreeOnMtu(private_data);
  return made;
}

// The queue pair is destroyed first, so that nothing is written from then on. Destroying the id
// then notifies or rejects the other side.
SystemConnection::~SystemConnection() {
  owner_->Forget(this);
  if (queue_pair_ != nullptr) device_->DestroyQueuePair(queue_pair_);
}

// ---- the queue pair ----

absl::Status SystemConnection::MakeQueuePair() {
  LEEWAY_RETURN_IF_ERROR(CheckPath());
  LEEWAY_ASSIGN_OR_RETURN(device_, owner_->DeviceOf(id_.get()));
  LEEWAY_ASSIGN_OR_RETURN(queue_pair_, device_->NewQueuePair());
  LEEWAY_RETURN_IF_ERROR(Modify(IBV_QPS_INIT));
  stage_ = Stage::kReady;
  return absl::OkStatus();
}

absl::Status SystemConnection::CheckPath() const {
  const Path& path = owner_->path();
  const std::string device = library_.get_device_name(id_->verbs->device);
  if ((path.device.empty() || device == path.device) &&
      (path.port == 0 || id_->port_num == path.port)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "the rdma connection with ", peer_, " goes over ", device, " port ", id_->port_num, ", but ",
      PathText(path), ": set LEEWAY_HOST or LEEWAY_INTERFACE to that device's address"));
}

absl::Status SystemConnection::MakeReadyToSend() {
  LEEWAY_RETURN_IF_ERROR(Modify(IBV_QPS_RTR));
  return Modify(IBV_QPS_RTS);
}

// rdma_cm knows the path; retries and timeouts are set here.
absl::Status SystemConnection::Modify(ibv_qp_state state) {
  ibv_qp_attr attributes{};
  int mask = 0;
  attributes.qp_state = state;
  if (library_.init_qp_attr(id_.get(), &attributes, &mask) != 0) {
    return Cannot("the queue pair's path", errno);
  }
  if (state == IBV_QPS_INIT) {
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  } else if (state == IBV_QPS_RTR) {
    attributes.max_dest_rd_atomic = kReads;
    attributes.min_rnr_timer = kReceiverTimer;
    if (owner_->path().gid_index != Path::kAnyGid && attributes.ah_attr.is_global != 0) {
      attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(owner_->path().gid_index);
    }
    if (mtu_bytes_ != 0 && mtu_bytes_ < MtuBytes(attributes.path_mtu)) {
      attributes.path_mtu = MtuOf(mtu_bytes_);
    }
    device_->LearnPath(attributes);
  } else {
    attributes.timeout = AckTimeout(owner_->options().timeout_ms);
    attributes.retry_cnt = kRetries;
    attributes.rnr_retry = kReceiverRetries;
    attributes.max_rd_atomic = kReads;
  }
  const int error = library_.modify_qp(queue_pair_, &attributes, mask);
  return error == 0 ? absl::OkStatus() : Cannot("the queue pair's next state", error);
}

// Puts the queue pair in error, which flushes all outstanding requests.
void SystemConnection::MakeFail() {
  if (queue_pair_ == nullptr) return;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  library_.modify_qp(queue_pair_, &attributes, IBV_QP_STATE);
}

absl::Status SystemConnection::Cannot(const char* step, int error) const {
  return absl::UnavailableError(absl::StrCat("cannot connect to ", peer_, " over rdma: ", step,
                                             ": ", std::strerror(error), Advice(error)));
}

// ---- what the user asks for ----

// Both sides have to use the same packet size, and rdma_cm has no parameter for it.
void SystemConnection::AgreeOnMtu(std::span<const std::byte> private_data) {
  if (private_data.size() < kPrivateBytesMax + 4) return;
  const auto theirs = Get<std::uint32_t>(private_data.data() + kPrivateBytesMax);
  if (theirs < kMtuBytesMin || theirs > kMtuBytesMax || (theirs & (theirs - 1)) != 0) return;
  mtu_bytes_ = mtu_bytes_ == 0 ? theirs : std::min(mtu_bytes_, theirs);
}

rdma_conn_param SystemConnection::Parameters(std::span<const std::byte> private_data) {
  private_data_.fill(std::byte{0});
  std::copy(private_data.begin(), private_data.end(), private_data_.begin());
  Put(mtu_bytes_, private_data_.data() + kPrivateBytesMax);
  rdma_conn_param parameters{};
  parameters.private_data = private_data_.data();
  parameters.private_data_len = static_cast<std::uint8_t>(private_data_.size());
  parameters.responder_resources = kReads;
  parameters.initiator_depth = kReads;
  parameters.flow_control = 1;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kReceiverRetries;
  parameters.srq = 1;
  parameters.qp_num = queue_pair_->qp_num;
  return parameters;
}

absl::Status SystemConnection::Connect(std::span<const std::byte> private_data) {
  if (!dialled_ || stage_ != Stage::kReady || private_data.size() > kPrivateBytesMax) {
    return absl::FailedPreconditionError(absl::StrCat(peer_, " cannot be connected to now"));
  }
  rdma_conn_param parameters = Parameters(private_data);
  if (library_.connect(id_.get(), &parameters) != 0) return Cannot("the request", errno);
  stage_ = Stage::kConnecting;
  return absl::OkStatus();
}

absl::Status SystemConnection::Accept(std::span<const std::byte> private_data) {
  if (dialled_ || stage_ != Stage::kReady || private_data.size() > kPrivateBytesMax) {
    return absl::FailedPreconditionError(absl::StrCat(peer_, " cannot be accepted now"));
  }
  LEEWAY_RETURN_IF_ERROR(MakeReadyToSend());
  rdma_conn_param parameters = Parameters(private_data);
  if (library_.accept(id_.get(), &parameters) != 0) return Cannot("accepting it", errno);
  stage_ = Stage::kConnecting;
  return absl::OkStatus();
}

absl::Status SystemConnection::Post(std::span<const SendRequest> requests) {
  if (queue_pair_ == nullptr) return absl::FailedPreconditionError("not connected yet");
  Chain chain;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].segments.size() > kSegmentsMax) {
      return absl::InvalidArgumentError("too many segments in one request");
    }
    chain.Add(requests[i], device_->inline_bytes());
    if (!chain.full() && i + 1 < requests.size()) continue;
    ibv_send_wr* refused = nullptr;
    if (const int error = ibv_post_send(queue_pair_, chain.first(), &refused); error != 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot send to ", peer_, " over rdma: ", std::strerror(error)));
    }
    chain.Clear();
  }
  return absl::OkStatus();
}

// Reported on this side at once, because the answer of a dead peer may take minutes.
void SystemConnection::Disconnect() {
  if (stage_ == Stage::kEnded) return;
  const bool told = stage_ == Stage::kConnecting || stage_ == Stage::kEstablished;
  stage_ = Stage::kEnded;
  MakeFail();
  if (told) library_.disconnect(id_.get());
  owner_->Report(EventOf(EventKind::kDisconnected));
}

// ---- what rdma_cm says ----

Event SystemConnection::EventOf(EventKind kind) {
  Event event;
  event.kind = kind;
  event.connection = this;
  return event;
}

std::optional<Event> SystemConnection::OnEvent(const CmEvent& event) {
  if (stage_ == Stage::kEnded) return std::nullopt;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return OnAddressResolved();
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return OnRouteResolved();
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return OnResponse(event);
    case RDMA_CM_EVENT_ESTABLISHED:
      stage_ = Stage::kEstablished;
      return EventOf(EventKind::kEstablished);
    case RDMA_CM_EVENT_DISCONNECTED:
      return OnDisconnected();
    case RDMA_CM_EVENT_ADDR_ERROR:
      return Fail(Cannot("resolving its address", -event.status));
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return Fail(Cannot("resolving the route to it", -event.status));
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return Fail(Cannot("connecting", event.status < 0 ? -event.status : ETIMEDOUT));
    case RDMA_CM_EVENT_REJECTED:
      return Fail(absl::UnavailableError(
          absl::StrCat("cannot connect to ", peer_, " over rdma: ", Rejection(event.status))));
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return Fail(Cannot("its device was removed", ENODEV));
    default:
      return std::nullopt;
  }
}

std::optional<Event> SystemConnection::OnAddressResolved() {
  const auto timeout_ms = static_cast<int>(owner_->options().timeout_ms);
  if (library_.resolve_route(id_.get(), timeout_ms) == 0) return std::nullopt;
  return Fail(Cannot("resolving the route to it", errno));
}

std::optional<Event> SystemConnection::OnRouteResolved() {
  if (absl::Status status = MakeQueuePair(); !status.ok()) return Fail(std::move(status));
  return EventOf(EventKind::kResolved);
}

std::optional<Event> SystemConnection::OnResponse(const CmEvent& event) {
  AgreeOnMtu(event.private_data);
  if (absl::Status status = MakeReadyToSend(); !status.ok()) return Fail(std::move(status));
  if (library_.establish(id_.get()) != 0) return Fail(Cannot("the last step", errno));
  stage_ = Stage::kEstablished;
  Event established = EventOf(EventKind::kEstablished);
  established.private_data = event.private_data;
  established.private_data.resize(std::min(established.private_data.size(), kPrivateBytesMax));
  return established;
}

std::optional<Event> SystemConnection::OnDisconnected() {
  if (stage_ != Stage::kEstablished) {
    return Fail(absl::UnavailableError(
        absl::StrCat(peer_, " ended the rdma connection before it was established")));
  }
  stage_ = Stage::kEnded;
  MakeFail();
  return EventOf(EventKind::kDisconnected);
}

std::optional<Event> SystemConnection::Fail(absl::Status why) {
  stage_ = Stage::kEnded;
  MakeFail();
  Event failed = EventOf(EventKind::kFailed);
  failed.why = std::move(why);
  return failed;
}

}  // namespace leeway::van::verbs
