#include "van/mixed/mixed_transport.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/address.h"
#include "runtime/log.h"
#include "runtime/status_macros.h"
#include "van/tcp_address.h"

namespace leeway::van {
namespace {

constexpr absl::Duration kAvoid = absl::Seconds(10);

bool SameNumber(const sockaddr& card, int family, const void* number) {
  if (card.sa_family != family) return false;
  if (family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(card);
    return std::memcmp(&in.sin_addr, number, sizeof(in.sin_addr)) == 0;
  }
  const auto& in = reinterpret_cast<const sockaddr_in6&>(card);
  return std::memcmp(&in.sin6_addr, number, sizeof(in.sin6_addr)) == 0;
}

}  // namespace

std::string ShmNameFor(const std::string& host, std::uint16_t port) {
  const bool any = host.empty() || host == "0.0.0.0" || host == "[::]";
  return absl::StrCat("tcp/", any ? "any" : host, ":", port);
}

bool IsOwnHost(const std::string& number) {
  if (absl::StartsWith(number, "127.")) return true;
  std::string bare = number;
  if (bare.size() > 2 && bare.front() == '[') bare = bare.substr(1, bare.size() - 2);
  in6_addr parsed{};  // room for either
  const int family = absl::StrContains(bare, ":") ? AF_INET6 : AF_INET;
  if (::inet_pton(family, bare.substr(0, bare.find('%')).c_str(), &parsed) != 1) return false;
  ifaddrs* cards = nullptr;
  if (::getifaddrs(&cards) != 0) return false;
  bool own = false;
  for (const ifaddrs* card = cards; card != nullptr && !own; card = card->ifa_next) {
    own = card->ifa_addr != nullptr && SameNumber(*card->ifa_addr, family, &parsed);
  }
  ::freeifaddrs(cards);
  return own;
}

MixedTransport::MixedTransport(runtime::Loop* loop, std::unique_ptr<Transport> remote,
                               std::unique_ptr<ShmTransport> shm, bool shm_only)
    : loop_(loop), shm_only_(shm_only), remote_(std::move(remote)), shm_(std::move(shm)) {}

MixedTransport::~MixedTransport() = default;

void MixedTransport::Start(TransportEvents* events) {
  events_ = events;
  remote_->Start(&remote_events_);
  shm_->Start(&shm_events_);
}

absl::StatusOr<std::string> MixedTransport::Listen(absl::string_view address) {
  // First, because it finds the port, and says what is wrong with the address.
  LEEWAY_ASSIGN_OR_RETURN(std::string advertised, remote_->Listen(address));
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToBind(parsed.host));
  const auto port = static_cast<std::uint16_t>(runtime::PortOf(advertised));
  const absl::Status shared =
      shm_->Listen(absl::StrCat("shm://", ShmNameFor(host.number, port))).status();
  if (shared.ok()) return advertised;
  if (shm_only_) return shared;
  runtime::LogWarning("processes of this machine will connect to ", advertised,
                      " over tcp: ", std::string(shared.message()));
  return advertised;
}

// ---- dialling ----

absl::StatusOr<ConnId> MixedTransport::DialShm(const std::string& host, std::uint16_t port) {
  absl::StatusOr<ConnId> conn = shm_->TryDial(ShmNameFor(host, port));
  return conn.ok() ? conn : shm_->TryDial(ShmNameFor("", port));
}

absl::StatusOr<ConnId> MixedTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  const auto dial_remote = [&]() -> absl::StatusOr<ConnId> {
    LEEWAY_ASSIGN_OR_RETURN(const ConnId conn, remote_->Dial(address));
    return Outer(conn, kRemote);
  };
  if (parsed.host.empty() || parsed.port == 0) return dial_remote();
  const auto avoided = avoided_.find(std::string(address));
  if (avoided != avoided_.end() && loop_->Now() < avoided->second) return dial_remote();
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToConnect(parsed.host));
  absl::Status why = absl::FailedPreconditionError("it is not on this machine");
  if (IsOwnHost(host.number)) {
    const absl::StatusOr<ConnId> conn = DialShm(host.number, parsed.port);
    if (conn.ok()) {
      opening_[*conn] = std::string(address);
      return Outer(*conn, kShm);
    }
    why = conn.status();
  }
  if (!shm_only_) return dial_remote();
  return Outer(shm_->DialInVain(absl::UnavailableError(absl::StrCat(
                   "not over shared memory (LEEWAY_VAN=shm): ", std::string(why.message())))),
               kShm);
}

void MixedTransport::Avoid(ConnId conn, const absl::Status& why) {
  const auto found = opening_.find(conn);
  if (found == opening_.end()) return;
  if (!shm_only_) {
    runtime::LogDebug("not over shared memory to ", found->second, ": ",
                      std::string(why.message()));
    avoided_[found->second] = loop_->Now() + kAvoid;
  }
  opening_.erase(found);
}

// ---- connections ----

Transport& MixedTransport::Below(ConnId conn) const {
  return conn % 2 == kShm ? static_cast<Transport&>(*shm_) : *remote_;
}

void MixedTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  Below(conn).Send(conn / 2, prefix, std::move(message), std::move(done));
}

void MixedTransport::Close(ConnId conn) {
  // One that was given up because nothing came of it.
  if (conn % 2 == kShm) Avoid(conn / 2, absl::DeadlineExceededError("it does not answer"));
  Below(conn).Close(conn / 2);
}

std::string MixedTransport::AddressOf(ConnId conn) const { return Below(conn).AddressOf(conn / 2); }

bool MixedTransport::near(ConnId conn) const { return Below(conn).near(conn / 2); }

// ---- events ----

void MixedTransport::Events::OnAccepted(ConnId conn) {
  transport_->events_->OnAccepted(Outer(conn, way_));
}

void MixedTransport::Events::OnOpened(ConnId conn) {
  if (way_ == kShm) transport_->opening_.erase(conn);
  transport_->events_->OnOpened(Outer(conn, way_));
}

void MixedTransport::Events::OnArrival(ConnId conn, Arrival arrival) {
  transport_->events_->OnArrival(Outer(conn, way_), std::move(arrival));
}

std::shared_ptr<const Landing> MixedTransport::Events::LandingFor(ConnId conn,
                                                                  std::span<const std::byte> head,
                                                                  std::uint64_t bytes) {
  return transport_->events_->LandingFor(Outer(conn, way_), head, bytes);
}

void MixedTransport::Events::OnClosed(ConnId conn, const absl::Status& why) {
  if (way_ == kShm) transport_->Avoid(conn, why);
  transport_->events_->OnClosed(Outer(conn, way_), why);
}

void MixedTransport::Events::OnHandshakeFailed(const std::string& address) {
  transport_->events_->OnHandshakeFailed(address);
}

}  // namespace leeway::van
