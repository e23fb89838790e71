#include "van/address/tcp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/status_macros.h"

namespace leeway::van {
namespace {

absl::Status SenselessTcpAddress(absl::string_view address, absl::string_view why) {
  return SenselessAddress(address, why, "tcp://HOST:PORT");
}

bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ||
         c == ':' || c == '%';
}

std::string NumberOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1] = {};
  const socklen_t size =
      address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  if (getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return address->sa_family == AF_INET6 ? absl::StrCat("[", text, "]") : std::string(text);
}

ResolvedHost Same(const sockaddr* address) {
  const std::string number = NumberOf(address);
  return {number, number, address->sa_family == AF_INET6};
}

// The first network card that `fits`; IPv4 before IPv6.
template <class Fits>
std::optional<ResolvedHost> FindCard(const Fits& fits) {
  ifaddrs* cards = nullptr;
  if (getifaddrs(&cards) != 0) return std::nullopt;
  std::optional<ResolvedHost> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* card = cards; card != nullptr && !found; card = card->ifa_next) {
      if (card->ifa_addr != nullptr && card->ifa_addr->sa_family == family && fits(*card)) {
        found = Same(card->ifa_addr);
      }
    }
  }
  freeifaddrs(cards);
  return found;
}

bool IsLinkLocal(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// The address that others can probably reach this machine at, if nothing says which others: that of
// the first card that is up.
std::string OwnAddress() {
  const auto card = FindCard([](const ifaddrs& c) {
    return (c.ifa_flags & IFF_UP) != 0 && (c.ifa_flags & IFF_LOOPBACK) == 0 &&
           !IsLinkLocal(c.ifa_addr);
  });
  return card ? card->number : "127.0.0.1";
}

absl::StatusOr<ResolvedHost> LookUp(const std::string& host, const char* advice) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0 || found == nullptr) {
    if (!runtime::HasDescriptor()) return runtime::OutOfDescriptors();  // for the question
    return WithReason(absl::NotFoundError(absl::StrCat("unknown host '", host, "' (",
                                                       gai_strerror(error), "); ", advice)),
                      absl::StrCat("name not found (", gai_strerror(error), ")"));
  }
  const addrinfo* best = found;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family == AF_INET) {
      best = one;
      break;
    }
  }
  ResolvedHost host_found = Same(best->ai_addr);
  freeaddrinfo(found);
  return host_found;
}

}  // namespace

absl::Status SenselessAddress(absl::string_view address, absl::string_view why,
                              absl::string_view expected) {
  // The text is shown up to a zero byte.
  return absl::InvalidArgumentError(absl::StrCat("'", address.substr(0, address.find('\0')),
                                                 "' is not an address: ", why, "; ", expected,
                                                 " is expected"));
}

absl::StatusOr<TcpAddress> ParseTcpAddress(absl::string_view address) {
  absl::string_view rest = address;
  if (absl::StrContains(address, '\0')) return SenselessTcpAddress(address, "it holds a zero byte");
  if (!absl::ConsumePrefix(&rest, "tcp://")) {
    return SenselessTcpAddress(address, "it does not begin with tcp://");
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return SenselessTcpAddress(address, "there is no port");
  absl::string_view host = rest.substr(0, colon);
  const absl::string_view port = rest.substr(colon + 1);
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (!bracketed && absl::StrContains(host, ":")) {
    return SenselessTcpAddress(address, "an IPv6 address belongs in brackets");
  }
  if (host == "*") host = "";
  for (const char c : host) {
    if (!IsHostCharacter(c))
      return SenselessTcpAddress(address, "a host name has no such character");
  }
  std::uint32_t number = 0;
  if (port.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(port[0])) ||
      !absl::SimpleAtoi(port, &number) || number > 65535) {
    return SenselessTcpAddress(address, "the port is a number from 0 to 65535");
  }
  return TcpAddress{std::string(host), static_cast<std::uint16_t>(number)};
}

absl::Status CheckDialable(absl::string_view address, absl::string_view host, std::uint16_t port) {
  if (!host.empty() && port != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", address,
                   "' is not an address to connect to: it needs a host and a "
                   "port; check LEEWAY_SCHEDULER"));
}

std::string AnyTcpAddress(absl::string_view host) {
  if (host.empty()) return "tcp://0.0.0.0:0";
  const bool bare_v6 = absl::StrContains(host, ":") && !absl::StrContains(host, "[");
  return bare_v6 ? absl::StrCat("tcp://[", host, "]:0") : absl::StrCat("tcp://", host, ":0");
}

absl::StatusOr<ResolvedHost> ResolveToBind(const std::string& host) {
  if (host.empty() || host == "0.0.0.0") return ResolvedHost{"0.0.0.0", OwnAddress(), false};
  // This also accepts connections to IPv4 addresses.
  if (host == "::") return ResolvedHost{"[::]", OwnAddress(), true};
  if (const auto card = FindCard([&](const ifaddrs& c) { return host == c.ifa_name; })) {
    return *card;
  }
  return LookUp(host,
                "it is no network card of this machine either: check LEEWAY_HOST or "
                "LEEWAY_INTERFACE, or a scheduler's LEEWAY_SCHEDULER");
}

absl::StatusOr<ResolvedHost> ResolveToConnect(const std::string& host) {
  return LookUp(host,
                "check LEEWAY_SCHEDULER or DMLC_PS_ROOT_URI, or LEEWAY_HOST where a server "
                "announces it");
}

absl::StatusOr<sockaddr_storage> SocketAddressOf(const ResolvedHost& host, std::uint16_t port) {
  const std::string bare = host.v6 ? host.number.substr(1, host.number.size() - 2) : host.number;
  addrinfo hints{};
  hints.ai_family = host.v6 ? AF_INET6 : AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(bare.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (error != 0 || found == nullptr) {
    return absl::NotFoundError(absl::StrCat("'", host.number, "': ", ::gai_strerror(error)));
  }
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
  return address;
}

absl::Status CheckAnnouncedHost(const std::string& host) {
  absl::string_view bare = host;
  if (absl::ConsumePrefix(&bare, "[")) absl::ConsumeSuffix(&bare, "]");
  return LookUp(std::string(bare),
                "set LEEWAY_HOST or DMLC_NODE_HOST to an address others reach this node at")
      .status();
}

absl::Status CannotListen(absl::string_view address, int error) {
  const std::string cannot = absl::StrCat("cannot listen on ", address, ": ");
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(
          absl::StrCat(cannot,
                       "it is in use; choose another port (LEEWAY_SCHEDULER or "
                       "DMLC_PS_ROOT_PORT) or stop the process that holds it"));
    case EADDRNOTAVAIL:
    case ENODEV:
      return absl::NotFoundError(
          absl::StrCat(cannot,
                       "no network card of this machine has that address; check LEEWAY_HOST "
                       "or LEEWAY_INTERFACE, or a scheduler's LEEWAY_SCHEDULER"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          cannot, "permission denied; ports below 1024 and folders of other users are reserved"));
    case ENOENT:
    case ENOTDIR:
      return absl::InvalidArgumentError(absl::StrCat(cannot, "there is no such folder"));
    case EINVAL:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(absl::StrCat(cannot, "it is not a valid address"));
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(
          absl::StrCat(cannot, runtime::OutOfDescriptors(error).message()));
    default:
      return absl::UnavailableError(absl::StrCat(cannot, std::strerror(error)));
  }
}

std::string TcpName(const sockaddr_storage& address) {
  std::uint16_t port = 0;
  if (address.ss_family == AF_INET) {
    port = ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  } else if (address.ss_family == AF_INET6) {
    port = ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  } else {
    return "";
  }
  return absl::StrCat("tcp://", NumberOf(reinterpret_cast<const sockaddr*>(&address)), ":", port);
}

std::string TcpPeerName(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (fd < 0 || getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return TcpName(address);
}

// ---- routes ----

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
