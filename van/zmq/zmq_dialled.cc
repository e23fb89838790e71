#include "van/zmq/zmq_dialled.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "runtime/base/status_macros.h"
#include "van/address/tcp_address.h"
#include "van/transport.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {

std::int64_t ZmqFrameBytesMax(const Limits& limits) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(FrameBytesMax(limits), INT64_MAX));
}

absl::Status ZmqDialled::Open(const std::string& endpoint, bool inproc, bool v6) {
  inproc_ = inproc;
  over_tcp_ = absl::StartsWith(endpoint, "tcp://");
  LEEWAY_ASSIGN_OR_RETURN(socket_, ZmqSocket::New(shared_->context, ZMQ_DEALER));
  socket_.Set(ZMQ_IMMEDIATE, 1);
  socket_.Set(ZMQ_RECONNECT_IVL, -1);
  socket_.Set(ZMQ_HANDSHAKE_IVL, 10'000);
  socket_.Set(ZMQ_TCP_KEEPALIVE, 1);
  socket_.Set(ZMQ_MAXMSGSIZE, ZmqFrameBytesMax(shared_->limits));
  socket_.Set(ZMQ_HEARTBEAT_IVL, kHeartbeatIntervalMs);
  socket_.Set(ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatTimeoutMs);
  if (v6) socket_.Set(ZMQ_IPV6, 1);
  LEEWAY_RETURN_IF_ERROR(monitor_.Start(shared_->context, socket_));
  if (Zmq().zmq_connect(socket_.get(), endpoint.c_str()) != 0) {
    return ZmqError(address_, Zmq().zmq_errno());
  }
  monitor_source_ = std::make_unique<ZmqSocketSource>(shared_->loop, monitor_.fd(),
                                                      [this] { return PollMonitor(); });
  data_source_ = std::make_unique<ZmqSocketSource>(shared_->loop, socket_.Get(ZMQ_FD),
                                                   [this] { return PollData(); });
  handshaken_ = inproc;
  return absl::OkStatus();
}

bool ZmqDialled::Writable() const { return (socket_.Get(ZMQ_EVENTS) & ZMQ_POLLOUT) != 0; }

ZmqSent ZmqDialled::Send(const Prefix& prefix, const Message& message, ZmqExports::Ticket* ticket) {
  if (data_source_ != nullptr) data_source_->Touch();
  return SendFrames(socket_.get(), std::string(), prefix, message,
                    shared_->sends_checksums(over_tcp_), !inproc_, shared_->exports, ticket);
}

void ZmqDialled::Shut() {
  if (std::exchange(shut_, true)) return;
  monitor_source_.reset();
  data_source_.reset();
  if (socket_.get() == nullptr) return;
  monitor_.Stop(socket_);
  socket_.Set(ZMQ_LINGER, opened_ && !lost_ ? kLingerMs : 0);
  socket_ = ZmqSocket();
}

bool ZmqDialled::PollMonitor() {
  bool any = false;
  ZmqMonitor::Event event;
  while (monitor_.Next(&event)) {
    any = true;
    if (data_source_ != nullptr) data_source_->Touch();
    switch (event.kind) {
      case ZmqMonitor::Kind::kTaken:
        taken_ = true;
        break;
      case ZmqMonitor::Kind::kOpened:
        handshaken_ = true;
        break;
      case ZmqMonitor::Kind::kDisconnected:
        lost_ = true;
        why_lost_ = opened_ ? "the connection broke" : kTookAndClosed;
        break;
      case ZmqMonitor::Kind::kFailed:
        if (handshaken_) break;
        lost_ = true;
        if (why_lost_.empty()) why_lost_ = "connection refused";
        break;
      case ZmqMonitor::Kind::kHandshakeFailed:
        shared_->events->OnHandshakeFailed(address_, NoZmqHandshake());
        break;
      case ZmqMonitor::Kind::kAccepted:
      case ZmqMonitor::Kind::kStopped:
      case ZmqMonitor::Kind::kOther:
        break;
    }
  }
  return any;
}

bool ZmqDialled::TryOpen() {
  // The handshake is reported by one thread and the pipe attached through another queue, so both
  // have to have happened.
  if (opened_ || !handshaken_ || !Writable()) return false;
  opened_ = true;
  shared_->events->OnOpened(conn_);
  return true;
}

bool ZmqDialled::PollData() {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  bool any = TryOpen();
  bool drained = false;
  for (int i = 0; alive && !shut_ && i < kMessagesPerTurn; ++i) {
    ZmqReceived received;
    if (!received.Receive(socket_.get(), false, shared_->limits.payload_frames_max)) {
      drained = true;
      break;
    }
    any = true;
    shared_->events->OnArrival(conn_, received.TakeArrival(shared_->verifies_checksums()));
  }
  if (!drained) return any;
  // Within a process there is no connection that could break: the end of the other side shows only
  // in that the socket is not writable any more.
  if (inproc_ && opened_ && !lost_ && !Writable()) {
    lost_ = true;
    why_lost_ = "the other side has closed the connection";
    return true;  // check once more for its last messages
  }
  if (!lost_) return any;
  Shut();
  shared_->ended.push_back(conn_);
  shared_->events->OnClosed(conn_, absl::UnavailableError(why_lost_));
  return true;
}

}  // namespace leeway::van
