#include "van/zmq/zmq_monitor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "van/zmq/zmq_api.h"

namespace leeway::van {
namespace {

constexpr long kCloseWaitMs = 1000;
constexpr int kWatched = ZMQ_EVENT_LISTENING | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED |
                         ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                         ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_MONITOR_STOPPED |
                         ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

ZmqMonitor::Kind KindOf(std::uint16_t event) {
  switch (event) {
    case ZMQ_EVENT_CONNECTED:
      return ZmqMonitor::Kind::kTaken;
    case ZMQ_EVENT_ACCEPTED:
      return ZmqMonitor::Kind::kAccepted;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
      return ZmqMonitor::Kind::kOpened;
    case ZMQ_EVENT_DISCONNECTED:
      return ZmqMonitor::Kind::kDisconnected;
    case ZMQ_EVENT_CLOSED:
      return ZmqMonitor::Kind::kFailed;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return ZmqMonitor::Kind::kHandshakeFailed;
    case ZMQ_EVENT_MONITOR_STOPPED:
      return ZmqMonitor::Kind::kStopped;
    default:
      return ZmqMonitor::Kind::kOther;
  }
}

}  // namespace

absl::Status ZmqMonitor::Start(const std::shared_ptr<ZmqContext>& context,
                               const ZmqSocket& watched) {
  const std::string name = absl::StrCat("inproc://leeway.monitor.", context->NextNumber());
  if (Zmq().zmq_socket_monitor(watched.get(), name.c_str(), kWatched) != 0) {
    return ZmqError("cannot watch a ZeroMQ socket", Zmq().zmq_errno());
  }
  LEEWAY_ASSIGN_OR_RETURN(events_, ZmqSocket::New(context, ZMQ_PAIR));
  if (Zmq().zmq_connect(events_.get(), name.c_str()) != 0) {
    return ZmqError("cannot watch a ZeroMQ socket", Zmq().zmq_errno());
  }
  fd_ = events_.Get(ZMQ_FD);
  return absl::OkStatus();
}

void ZmqMonitor::Stop(const ZmqSocket& watched) {
  Zmq().zmq_socket_monitor(watched.get(), nullptr, 0);
  events_ = ZmqSocket();
  closed_in_children_.clear();
}

void ZmqMonitor::AwaitClosed() {
  zmq_pollitem_t item{events_.get(), 0, ZMQ_POLLIN, 0};
  bool closed = false;
  bool stopped = false;
  while (!closed && !stopped && Zmq().zmq_poll(&item, 1, kCloseWaitMs) > 0) {
    Event event;
    while (Next(&event)) {
      closed = closed || event.kind == Kind::kFailed;
      stopped = stopped || event.kind == Kind::kStopped;
    }
  }
  // While a socket lingers, ZeroMQ may send further events, and blocks if they are not read.
  if (!stopped) events_.GiveMonitorToContext();
  events_ = ZmqSocket();
}

bool ZmqMonitor::Next(Event* event) {
  // Two frames: event (16 bits) and value (32 bits) in the machine's byte order, then the address.
  char first[6];
  const int size = Zmq().zmq_recv(events_.get(), first, sizeof(first), ZMQ_DONTWAIT);
  if (size < 0) return false;
  while (events_.Get(ZMQ_RCVMORE) != 0) {
    char address[512];
    if (Zmq().zmq_recv(events_.get(), address, sizeof(address), ZMQ_DONTWAIT) < 0) break;
  }
  if (size != sizeof(first)) return true;
  std::uint16_t code = 0;
  std::uint32_t value = 0;
  std::memcpy(&code, first, sizeof(code));
  std::memcpy(&value, first + sizeof(code), sizeof(value));
  event->kind = KindOf(code);
  event->value = static_cast<int>(value);
  NoteDescriptor(code, event->value);
  return true;
}

void ZmqMonitor::NoteDescriptor(std::uint16_t event, int fd) {
  constexpr int kOpen = ZMQ_EVENT_LISTENING | ZMQ_EVENT_CONNECTED | ZMQ_EVENT_ACCEPTED;
  constexpr int kClose = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;
  if ((event & (kOpen | kClose)) != 0) closed_in_children_.erase(fd);
  if ((event & kOpen) != 0) closed_in_children_.try_emplace(fd, fd);
}

}  // namespace leeway::van
