#include "van/tcp/tcp_socket.h"

#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/status_macros.h"
#include "van/transport.h"

namespace leeway::van {
namespace {

// Detects a peer whose machine is gone: the first probe after a minute, given up after another one.
constexpr int kKeepIdleS = 60;
constexpr int kKeepIntervalS = 10;
constexpr int kKeepProbes = 6;
constexpr int kBufferWithinMachineBytes = 768 << 10;
constexpr char kCongestionWithinMachine[] = "reno";
constexpr int kUnsentBytes = 256 << 10;

struct SocketAddress {
  sockaddr_storage address{};
  socklen_t size = 0;
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&address); }
  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
};

absl::StatusOr<SocketAddress> AddressOf(const ResolvedHost& host, std::uint16_t port) {
  SocketAddress result;
  LEEWAY_ASSIGN_OR_RETURN(result.address, SocketAddressOf(host, port));
  result.size = host.v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return result;
}

UniqueFd NewSocket(const ResolvedHost& host) {
  return UniqueFd::ClosedInChildren(
      ::socket(host.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void Set(int fd, int level, int option, int value) {
  ::setsockopt(fd, level, option, &value, sizeof(value));
}

absl::Status Failed(int error) {
  if (runtime::IsOutOfDescriptors(error)) return runtime::OutOfDescriptors(error);
  if (error == ECONNREFUSED) return absl::UnavailableError("connection refused");
  if (error == ENETUNREACH || error == EHOSTUNREACH) {
    return absl::UnavailableError(absl::StrCat("no route (", std::strerror(error), ")"));
  }
  return absl::UnavailableError(std::strerror(error));
}

struct Ends {
  SocketAddress own, peer;
  bool known = false;
};

Ends EndsOf(int fd) {
  Ends ends;
  ends.own.size = ends.peer.size = sizeof(sockaddr_storage);
  ends.known = ::getsockname(fd, ends.own.generic(), &ends.own.size) == 0 &&
               ::getpeername(fd, ends.peer.generic(), &ends.peer.size) == 0;
  return ends;
}

// A process that dials a port of its own machine on which nothing listens may be given that very
// port as its own, and is then connected to itself.
bool IsConnectedToItself(const Ends& ends) {
  return ends.known && ends.own.size == ends.peer.size &&
         std::memcmp(&ends.own.address, &ends.peer.address, ends.own.size) == 0;
}

bool IsWithinMachine(const Ends& ends) {
  if (!ends.known || ends.own.address.ss_family != ends.peer.address.ss_family) return false;
  if (ends.own.address.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&ends.own.address)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(&ends.peer.address)->sin_addr.s_addr;
  }
  const auto& own = reinterpret_cast<const sockaddr_in6*>(&ends.own.address)->sin6_addr;
  const auto& peer = reinterpret_cast<const sockaddr_in6*>(&ends.peer.address)->sin6_addr;
  return std::memcmp(&own, &peer, sizeof(own)) == 0;
}

// Limits the bytes that the system holds of what we send. Between machines only those that are not
// on the wire yet are limited, because they could not be overtaken any more; the number on the wire
// depends on the distance. Within a machine there is no distance to fill: the buffer has to be
// large enough that one side need not wait while the other is busy with a block, and a buffer
// larger than the caches is slow. Congestion control has no use there either: one that paces what
// it sends (BBR, which may be the system's default) only makes the other side sleep and wake up
// more often. So the one that every kernel has is chosen; if that is refused, the default stays.
void SuitDistance(int fd, const Ends& ends) {
  if (IsWithinMachine(ends)) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kCongestionWithinMachine,
                 sizeof(kCongestionWithinMachine) - 1);
    Set(fd, SOL_SOCKET, SO_SNDBUF, kBufferWithinMachineBytes);
  } else {
    Set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentBytes);
  }
}

void SetUpConnection(int fd, const Ends& ends) {
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);  // small messages are gathered before they are sent
  Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleS);
  Set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalS);
  Set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepProbes);
  SuitDistance(fd, ends);
}

}  // namespace

absl::StatusOr<TcpListening> ListenOnTcp(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToBind(parsed.host));
  LEEWAY_ASSIGN_OR_RETURN(SocketAddress local, AddressOf(host, parsed.port));
  TcpListening listening;
  listening.fd = NewSocket(host);
  const int fd = listening.fd.get();
  if (!listening.fd) return CannotListen(address, errno);
  if (host.v6) Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  // With SO_REUSEADDR, connections of a process that has just ended do not keep its successor from
  // the port. For port 0 it is set only after bind, so that the system chooses a port without such
  // connections.
  if (parsed.port != 0) Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(fd, local.generic(), local.size) != 0) return CannotListen(address, errno);
  Set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::listen(fd, kAcceptBacklog) != 0) return CannotListen(address, errno);
  local.size = sizeof(sockaddr_storage);
  if (::getsockname(fd, local.generic(), &local.size) != 0) return CannotListen(address, errno);
  const std::string bound = TcpName(local.address);
  listening.advertised = absl::StrCat("tcp://", host.advertised, bound.substr(bound.rfind(':')));
  return listening;
}

TcpAccepted AcceptTcp(int listener) {
  TcpAccepted accepted;
  SocketAddress peer;
  do {
    peer.size = sizeof(sockaddr_storage);
    accepted.fd = UniqueFd::ClosedInChildren(
        ::accept4(listener, peer.generic(), &peer.size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    // Errors of a connection from before it was accepted are ignored.
  } while (!accepted.fd && (errno == EINTR || errno == ECONNABORTED || errno == EPROTO));
  if (accepted.fd) {
    accepted.outcome = TcpAccepted::Outcome::kAccepted;
    accepted.peer = TcpName(peer.address);
    SetUpConnection(accepted.fd.get(), EndsOf(accepted.fd.get()));
  } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    accepted.outcome = TcpAccepted::Outcome::kOutOfDescriptors;
  }
  return accepted;
}

absl::StatusOr<UniqueFd> ConnectTcp(const ResolvedHost& host, std::uint16_t port) {
  LEEWAY_ASSIGN_OR_RETURN(const SocketAddress remote, AddressOf(host, port));
  UniqueFd fd = NewSocket(host);
  if (!fd) return Failed(errno);
  // An interrupted connect goes on by itself.
  if (::connect(fd.get(), remote.generic(), remote.size) != 0 && errno != EINPROGRESS &&
      errno != EINTR) {
    return Failed(errno);
  }
  return fd;
}

absl::Status TcpConnected(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return Failed(error);
  const Ends ends = EndsOf(fd);
  if (IsConnectedToItself(ends)) return Failed(ECONNREFUSED);
  SetUpConnection(fd, ends);
  return absl::OkStatus();
}

bool IsWithinMachine(int fd) { return IsWithinMachine(EndsOf(fd)); }

int TcpUnsentBytes(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQNSD, &bytes) == 0 ? bytes : 0;
}

}  // namespace leeway::van
