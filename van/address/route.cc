#include "van/address/route.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "van/address/reason.h"
#include "van/address/tcp_address.h"

namespace leeway::van {
namespace {

std::string Bare(absl::string_view number) {
  if (absl::ConsumePrefix(&number, "[")) absl::ConsumeSuffix(&number, "]");
  return std::string(number);
}

// Compares without port, scope and flow, which a card's address does not have.
bool SameHost(const sockaddr* a, const sockaddr_storage& b) {
  if (a == nullptr || a->sa_family != b.ss_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(&b)->sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(&b)->sin6_addr, sizeof(in6_addr)) == 0;
}

std::string CardOf(const sockaddr_storage& address) {
  ifaddrs* cards = nullptr;
  if (::getifaddrs(&cards) != 0) return "";
  std::string name;
  for (const ifaddrs* card = cards; card != nullptr && name.empty(); card = card->ifa_next) {
    if (SameHost(card->ifa_addr, address)) name = card->ifa_name;
  }
  ::freeifaddrs(cards);
  return name;
}

absl::Status NoRoute(const std::string& to, int error) {
  const std::string why = absl::StrCat("no route to ", Bare(to), " (", std::strerror(error), ")");
  return WithReason(absl::UnavailableError(
                        absl::StrCat(why,
                                     "; check this machine's network, or set LEEWAY_INTERFACE or "
                                     "LEEWAY_HOST")),
                    why);
}

}  // namespace

// Connecting a datagram socket makes the system choose the route, and sends nothing.
absl::StatusOr<Route> RouteTo(const std::string& host, std::uint16_t port) {
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost resolved, ResolveToConnect(Bare(host)));
  LEEWAY_ASSIGN_OR_RETURN(const sockaddr_storage to,
                          SocketAddressOf(resolved, port == 0 ? 1 : port));
  const int fd = ::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return NoRoute(resolved.number, errno);
  sockaddr_storage from{};
  socklen_t size = sizeof(from);
  const socklen_t to_size = resolved.v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  const bool found = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), to_size) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&from), &size) == 0;
  const int error = errno;
  ::close(fd);
  if (!found) return NoRoute(resolved.number, error);
  Route route;
  const std::string name = TcpName(from);  // "tcp://NUMBER:PORT"
  route.source = Bare(absl::string_view(name).substr(6, name.rfind(':') - 6));
  route.to = Bare(resolved.number);
  route.card = CardOf(from);
  route.v6 = resolved.v6;
  return route;
}

}  // namespace leeway::van
