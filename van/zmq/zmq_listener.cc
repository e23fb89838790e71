#include "van/zmq/zmq_listener.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {
namespace {

constexpr absl::Duration kCloseGrace = absl::Milliseconds(500);
constexpr std::size_t kClosedInprocMax = 4096;

// True if connection `a` was accepted after `b`: routing ids of ZeroMQ are a zero byte and a
// counter.
bool IsNewer(const std::string& a, const std::string& b) {
  const auto number = [](const std::string& id) {
    std::uint32_t value = 0;
    for (std::size_t i = 1; i < id.size(); ++i) {
      value = value << 8 | static_cast<unsigned char>(id[i]);
    }
    return value;
  };
  if (a.size() != 5 || b.size() != 5) return true;
  return static_cast<std::int32_t>(number(a) - number(b)) > 0;
}

constexpr char kGone[] = "a peer that is gone";

std::string PeerOf(int fd) {
  if (fd < 0) return "inproc";
  if (std::string tcp = TcpPeerName(fd); !tcp.empty()) return tcp;
  int domain = 0;
  socklen_t domain_size = sizeof(domain);
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_size) != 0 || domain != AF_UNIX ||
      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return kGone;
  }
  return absl::StrCat("ipc (process ", who.pid, ")");
}

}  // namespace

absl::StatusOr<std::string> ZmqListener::Open(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const ZmqAddress parsed, ParseZmqAddress(address));
  LEEWAY_ASSIGN_OR_RETURN(socket_, ZmqSocket::New(shared_->context, ZMQ_ROUTER));
  over_tcp_ = parsed.scheme == ZmqScheme::kTcp;
  socket_.Set(ZMQ_ROUTER_MANDATORY, 1);
  socket_.Set(ZMQ_HANDSHAKE_IVL, 10'000);
  socket_.Set(ZMQ_TCP_KEEPALIVE, 1);
  socket_.Set(ZMQ_HEARTBEAT_IVL, kHeartbeatIntervalMs);
  socket_.Set(ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatTimeoutMs);
  socket_.Set(ZMQ_BACKLOG, 1024);
  socket_.Set(ZMQ_MAXMSGSIZE, ZmqFrameBytesMax(shared_->limits));
  LEEWAY_RETURN_IF_ERROR(monitor_.Start(shared_->context, socket_));
  absl::StatusOr<std::string> advertised =
      parsed.scheme == ZmqScheme::kTcp   ? BindTcp(parsed, address)
      : parsed.scheme == ZmqScheme::kIpc ? BindIpc(parsed, address)
                                         : BindInproc(parsed, address);
  if (!advertised.ok()) return advertised;
  monitor_source_ = std::make_unique<ZmqSocketSource>(shared_->loop, monitor_.fd(),
                                                      [this] { return ReadMonitor(); });
  data_source_ = std::make_unique<ZmqSocketSource>(shared_->loop, socket_.Get(ZMQ_FD),
                                                   [this] { return PollData(); });
  return advertised;
}

absl::Status ZmqListener::Bind(const std::string& endpoint, absl::string_view address) {
  if (Zmq().zmq_bind(socket_.get(), endpoint.c_str()) == 0) return absl::OkStatus();
  const int error = Zmq().zmq_errno();
  // Errors that ZeroMQ adds to the system's have texts of their own.
  return error < ZMQ_HAUSNUMERO ? CannotListen(address, error)
                                : ZmqError(absl::StrCat("cannot listen on ", address), error);
}

absl::StatusOr<std::string> ZmqListener::BindTcp(const ZmqAddress& parsed,
                                                 absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToBind(parsed.host));
  if (host.v6) socket_.Set(ZMQ_IPV6, 1);
  LEEWAY_RETURN_IF_ERROR(Bind(absl::StrCat("tcp://", host.number, ":", parsed.port), address));
  const std::string bound = socket_.GetString(ZMQ_LAST_ENDPOINT);
  return absl::StrCat("tcp://", host.advertised, bound.substr(bound.rfind(':')));
}

absl::StatusOr<std::string> ZmqListener::BindIpc(const ZmqAddress& parsed,
                                                 absl::string_view address) {
  // ZeroMQ itself would take the path away from a process that listens on it.
  LEEWAY_RETURN_IF_ERROR(MakeRoomForIpc(std::string(address), parsed.name));
  LEEWAY_RETURN_IF_ERROR(Bind(std::string(address), address));
  return std::string(address);
}

absl::StatusOr<std::string> ZmqListener::BindInproc(const ZmqAddress& parsed,
                                                    absl::string_view address) {
  LEEWAY_RETURN_IF_ERROR(Bind(std::string(address), address));
  shared_->context->AddInproc(parsed.name);
  inproc_name_ = parsed.name;
  return std::string(address);
}

void ZmqListener::Shut() {
  if (socket_.get() == nullptr) return;
  monitor_source_.reset();
  data_source_.reset();
  for (auto& [id, conn] : conns_) shared_->loop->Cancel(conn.cut_off);
  const bool bound = !socket_.GetString(ZMQ_LAST_ENDPOINT).empty();
  if (!inproc_name_.empty()) {
    shared_->context->RemoveInproc(inproc_name_);
    Zmq().zmq_unbind(socket_.get(), absl::StrCat("inproc://", inproc_name_).c_str());
  }
  socket_.Set(ZMQ_LINGER, kLingerMs);
  if (bound && inproc_name_.empty()) {
    socket_ = ZmqSocket();
    monitor_.AwaitClosed();
  } else {
    monitor_.Stop(socket_);
    socket_ = ZmqSocket();
  }
}

// ---- connections ----

ConnId ZmqListener::Add(int fd) {
  const ConnId id = shared_->next_conn++;
  Conn& conn = conns_[id];
  conn.fd = fd;
  conn.peer = fd < 0 && inproc_name_.empty() ? kGone : PeerOf(fd);
  if (fd >= 0) by_fd_[fd] = id;
  return id;
}

void ZmqListener::Bound(ConnId id, const std::string& routing_id) {
  conns_[id].routing_id = routing_id;
  by_routing_id_[routing_id] = id;
}

void ZmqListener::NameAfter(ConnId id, const std::string& source_address) {
  const auto found = conns_.find(id);
  if (found == conns_.end() || found->second.peer != kGone || source_address.empty()) return;
  found->second.peer = absl::StrCat(source_address, " (gone)");
}

void ZmqListener::Lose(ConnId id) {
  Conn& conn = conns_[id];
  if (std::exchange(conn.lost, true)) return;
  lost_.push_back(id);
  if (data_source_ != nullptr) data_source_->Touch();
  const auto on_fd = by_fd_.find(conn.fd);
  if (on_fd != by_fd_.end() && on_fd->second == id) by_fd_.erase(on_fd);
}

void ZmqListener::Forget(ConnId id) {
  const auto found = conns_.find(id);
  if (found == conns_.end()) return;
  shared_->loop->Cancel(found->second.cut_off);
  by_routing_id_.erase(found->second.routing_id);
  conns_.erase(found);
}

bool ZmqListener::ReadMonitor() {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  bool any = false;
  ZmqMonitor::Event event;
  while (alive && monitor_.Next(&event)) {
    any = true;
    if (data_source_ != nullptr) data_source_->Touch();
    if (event.kind == ZmqMonitor::Kind::kAccepted) {
      shared_->events->OnAccepted(Add(event.value));
    } else if (event.kind == ZmqMonitor::Kind::kDisconnected) {
      const auto found = by_fd_.find(event.value);
      if (found != by_fd_.end()) Lose(found->second);
    }
  }
  return any;
}

ConnId ZmqListener::Match(ZmqReceived& received) {
  const auto known = by_routing_id_.find(received.routing_id());
  ConnId id = 0;
  if (known != by_routing_id_.end()) {
    id = known->second;
  } else {
    const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
    ReadMonitor();
    if (!alive) return 0;
    id = MatchNew(received.routing_id(), received.source_fd());
    if (!alive) return 0;
    if (id != 0) NameAfter(id, received.source_address());
  }
  const auto found = conns_.find(id);
  return found == conns_.end() || found->second.closed ? 0 : id;
}

ConnId ZmqListener::MatchNew(const std::string& routing_id, int fd) {
  const auto on_fd = by_fd_.find(fd);
  if (on_fd != by_fd_.end()) {
    const ConnId id = on_fd->second;
    const std::string& other = conns_[id].routing_id;
    if (other.empty()) {
      Bound(id, routing_id);
      return id;
    }
    // Two connections on one descriptor: the older one has ended, whatever has been reported of it
    // so far.
    if (!IsNewer(routing_id, other)) return 0;
    Lose(id);
  } else if (fd >= 0) {
    // It has sent a message and disconnected before this side looked.
    for (const ConnId id : lost_) {
      Conn& conn = conns_[id];
      if (conn.fd == fd && conn.routing_id.empty()) {
        Bound(id, routing_id);
        return id;
      }
    }
    return 0;
  }
  const ConnId id = Add(fd);
  Bound(id, routing_id);
  shared_->events->OnAccepted(id);
  return id;
}

bool ZmqListener::TellLost() {
  if (lost_.empty()) return false;
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  for (const ConnId id : std::exchange(lost_, {})) {
    const auto found = conns_.find(id);
    if (found == conns_.end()) continue;
    const bool tell = !found->second.closed;
    // ZeroMQ reports some failed handshakes and not others. A connection that ended without any
    // message has not completed one.
    const bool handshake_failed = tell && found->second.routing_id.empty();
    const std::string peer = found->second.peer;
    Forget(id);
    if (handshake_failed) shared_->events->OnHandshakeFailed(peer, NoZmqHandshake());
    if (tell) shared_->events->OnClosed(id, absl::UnavailableError("the connection broke"));
    if (!alive) break;
  }
  return true;
}

// ---- messages ----

bool ZmqListener::PollData() {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  bool any = false;
  for (int i = 0; i < kMessagesPerTurn; ++i) {
    ZmqReceived received;
    if (!received.Receive(socket_.get(), true, shared_->limits.payload_frames_max)) {
      return TellLost() || any;
    }
    any = true;
    const ConnId id = Match(received);
    if (alive && id != 0)
      shared_->events->OnArrival(id, received.TakeArrival(shared_->verifies_checksums()));
    if (!alive) return true;
  }
  return any;
}

ZmqSent ZmqListener::Send(ConnId id, const Prefix& prefix, const Message& message,
                          ZmqExports::Ticket* ticket) {
  const Conn& conn = conns_.at(id);
  if (conn.routing_id.empty() || conn.lost) return ZmqSent::kUnreachable;
  if (data_source_ != nullptr) data_source_->Touch();
  const ZmqSent sent =
      SendFrames(socket_.get(), conn.routing_id, prefix, message,
                 shared_->sends_checksums(over_tcp_), conn.fd >= 0, shared_->exports, ticket);
  if (sent != ZmqSent::kSent) Lose(id);
  return sent;
}

void ZmqListener::Close(ConnId id) {
  Conn& conn = conns_.at(id);
  conn.closed = true;
  if (conn.lost) return;
  if (conn.fd < 0) {
    closed_inproc_.push_back(id);
    if (closed_inproc_.size() <= kClosedInprocMax) return;
    Forget(closed_inproc_.front());
    closed_inproc_.pop_front();
    return;
  }
  // A connection without any message has no routing id to send to, so it gets no time.
  const absl::Duration grace = conn.routing_id.empty() ? absl::ZeroDuration() : kCloseGrace;
  conn.cut_off = shared_->loop->After(grace, [this, id] { CutOff(id); });
}

void ZmqListener::CutOff(ConnId id) {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  conns_[id].cut_off = runtime::TimerId::kNone;
  ReadMonitor();
  if (!alive) return;
  const auto found = conns_.find(id);
  if (found == conns_.end() || found->second.lost) return;
  // The descriptor belongs to ZeroMQ and may have been reused, so its peer is compared.
  const Conn& conn = found->second;
  if (conn.peer != kGone && PeerOf(conn.fd) == conn.peer) shutdown(conn.fd, SHUT_RDWR);
}

std::string ZmqListener::AddressOf(ConnId id) const {
  const auto found = conns_.find(id);
  return found == conns_.end() ? std::string() : found->second.peer;
}

}  // namespace leeway::van
