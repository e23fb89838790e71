#include "van/mixed/mixed_transport.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/config/address.h"
#include "runtime/log/log.h"
#include "van/address/tcp_address.h"

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
  in6_addr parsed{};  // large enough for both families
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

MixedTransport::MixedTransport(runtime::Loop* loop, std::unique_ptr<TcpTransport> tcp,
                               std::unique_ptr<ShmTransport> shm, std::unique_ptr<Transport> rdma,
                               Only only)
    : loop_(loop),
      only_(only),
      tcp_(std::move(tcp)),
      shm_(std::move(shm)),
      rdma_(std::move(rdma)) {}

MixedTransport::~MixedTransport() = default;

void MixedTransport::Start(TransportEvents* events) {
  events_ = events;
  tcp_->Start(&tcp_events_);
  if (shm_ != nullptr) shm_->Start(&shm_events_);
  if (rdma_ != nullptr) rdma_->Start(&rdma_events_);
}

// ---- listening ----

absl::StatusOr<std::string> MixedTransport::Listen(absl::string_view address) {
  // First, because it chooses the port and checks the address.
  LEEWAY_ASSIGN_OR_RETURN(std::string advertised, tcp_->Listen(address));
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToBind(parsed.host));
  const auto port = static_cast<std::uint16_t>(runtime::PortOf(advertised));
  if (rdma_ != nullptr) {
    const std::string same = absl::StrCat("tcp://", host.number, ":", port);
    const absl::Status rdma = rdma_->Listen(same).status();
    if (rdma.ok()) {
      tcp_->SetOffers(kTcpOffersRdma);
    } else if (only_ == Only::kRdma) {
      return rdma;
    } else {
      runtime::LogInfo("others will connect to ", advertised,
                       " over tcp: ", std::string(rdma.message()));
    }
  }
  if (shm_ == nullptr) return advertised;
  const absl::Status shared =
      shm_->Listen(absl::StrCat("shm://", ShmNameFor(host.number, port))).status();
  if (shared.ok()) return advertised;
  if (only_ == Only::kShm) return shared;
  runtime::LogWarning("processes of this machine will connect to ", advertised,
                      " over tcp: ", std::string(shared.message()));
  return advertised;
}

// ---- dialling ----

bool MixedTransport::IsAvoided(const Avoided& avoided, absl::string_view address) const {
  const auto found = avoided.find(std::string(address));
  return found != avoided.end() && loop_->Now() < found->second;
}

absl::StatusOr<ConnId> MixedTransport::DialShm(const std::string& host, std::uint16_t port) {
  absl::StatusOr<ConnId> conn = shm_->TryDial(ShmNameFor(host, port));
  return conn.ok() ? conn : shm_->TryDial(ShmNameFor("", port));
}

absl::StatusOr<ConnId> MixedTransport::DialTcp(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const ConnId conn, tcp_->Dial(address));
  if (rdma_ != nullptr && !IsAvoided(rdma_avoided_, address)) {
    upgrades_[Outer(conn, kTcp)].address = std::string(address);
  }
  return Outer(conn, kTcp);
}

absl::StatusOr<ConnId> MixedTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  if (only_ == Only::kRdma) {
    LEEWAY_ASSIGN_OR_RETURN(const ConnId conn, rdma_->Dial(address));
    return Outer(conn, kRdma);
  }
  if (shm_ == nullptr || parsed.host.empty() || parsed.port == 0) return DialTcp(address);
  if (IsAvoided(shm_avoided_, address)) return DialTcp(address);
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
  if (only_ != Only::kShm) return DialTcp(address);
  return Outer(shm_->DialInVain(absl::UnavailableError(absl::StrCat(
                   "not over shared memory (LEEWAY_VAN=shm): ", std::string(why.message())))),
               kShm);
}

void MixedTransport::AvoidShm(ConnId conn, const absl::Status& why) {
  const auto found = opening_.find(conn);
  if (found == opening_.end()) return;
  if (only_ != Only::kShm) {
    runtime::LogDebug("not over shared memory to ", found->second, ": ",
                      std::string(why.message()));
    shm_avoided_[found->second] = loop_->Now() + kAvoid;
  }
  opening_.erase(found);
}

// ---- from TCP to rdma ----

// The TCP connection has been established. True if rdma is tried before the owner is told.
bool MixedTransport::BeginUpgrade(ConnId tcp) {
  const ConnId outer = Outer(tcp, kTcp);
  const auto found = upgrades_.find(outer);
  if (found == upgrades_.end()) return false;
  if ((tcp_->OffersOf(tcp) & kTcpOffersRdma) != 0) {
    const absl::StatusOr<ConnId> rdma = rdma_->Dial(found->second.address);
    if (rdma.ok()) {
      found->second.rdma = *rdma;
      upgraded_[*rdma] = outer;
      return true;
    }
  }
  upgrades_.erase(found);
  return false;
}

ConnId MixedTransport::OuterOf(Way way, ConnId conn) const {
  if (way != kRdma) return Outer(conn, way);
  const auto found = upgraded_.find(conn);
  return found == upgraded_.end() ? Outer(conn, kRdma) : found->second;
}

// False: the owner is not told (yet).
bool MixedTransport::OnOpenedOver(Way way, ConnId conn, ConnId* outer) {
  *outer = OuterOf(way, conn);
  if (way == kShm) opening_.erase(conn);
  if (way == kTcp) return !BeginUpgrade(conn);
  if (way != kRdma) return true;
  const auto upgrade = upgrades_.find(*outer);
  if (upgrade == upgrades_.end()) return true;
  upgrade->second.stands = true;
  tcp_->Close(*outer / 4);
  return true;
}

bool MixedTransport::OnClosedOver(Way way, ConnId conn, const absl::Status& why, ConnId* outer) {
  *outer = OuterOf(way, conn);
  if (way == kShm) AvoidShm(conn, why);
  const auto upgrade = upgrades_.find(*outer);
  if (upgrade == upgrades_.end()) return true;
  const Upgrade was = upgrade->second;
  EndUpgrade(*outer);
  if (way == kTcp) return true;
  rdma_avoided_[was.address] = loop_->Now() + kAvoid;
  if (was.stands) return true;
  runtime::LogInfo("over tcp to ", was.address, ", not over rdma: ", std::string(why.message()));
  events_->OnOpened(*outer);
  return false;
}

// Ends an upgrade: the connection uses TCP again, or has ended.
void MixedTransport::EndUpgrade(ConnId outer) {
  const auto upgrade = upgrades_.find(outer);
  if (upgrade == upgrades_.end()) return;
  if (upgrade->second.rdma != 0) {
    upgraded_.erase(upgrade->second.rdma);
    rdma_->Close(upgrade->second.rdma);
  }
  upgrades_.erase(upgrade);
}

// ---- connections ----

Transport* MixedTransport::Of(ConnId way) const {
  if (way == kShm) return shm_.get();
  return way == kRdma ? rdma_.get() : static_cast<Transport*>(tcp_.get());
}

MixedTransport::Route MixedTransport::Below(ConnId conn) const {
  const auto upgrade = upgrades_.find(conn);
  if (upgrade != upgrades_.end() && upgrade->second.stands) {
    return {rdma_.get(), upgrade->second.rdma};
  }
  return {Of(conn % 4), conn / 4};
}

void MixedTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  const Route below = Below(conn);
  below.transport->Send(below.conn, prefix, std::move(message), std::move(done));
}

void MixedTransport::Close(ConnId conn) {
  // A connection over shared memory that was given up without an answer.
  if (conn % 4 == kShm) AvoidShm(conn / 4, absl::DeadlineExceededError("it does not answer"));
  const Route below = Below(conn);
  below.transport->Close(below.conn);
  if (const auto upgrade = upgrades_.find(conn); upgrade != upgrades_.end()) {
    const bool given_up = upgrade->second.rdma != 0 && !upgrade->second.stands;
    if (given_up) rdma_avoided_[upgrade->second.address] = loop_->Now() + kAvoid;
    EndUpgrade(conn);
  }
}

std::string MixedTransport::AddressOf(ConnId conn) const {
  const Route below = Below(conn);
  return below.transport->AddressOf(below.conn);
}

bool MixedTransport::taken(ConnId conn) const {
  const Route below = Below(conn);
  return below.transport->taken(below.conn);
}

bool MixedTransport::same_host(ConnId conn) const {
  const Route below = Below(conn);
  return below.transport->same_host(below.conn);
}

bool MixedTransport::gains_from_envelopes(ConnId conn) const {
  const Route below = Below(conn);
  return below.transport->gains_from_envelopes(below.conn);
}

std::optional<std::uint64_t> MixedTransport::ReceivedOfUnfinished(ConnId conn) const {
  const Route below = Below(conn);
  return below.transport->ReceivedOfUnfinished(below.conn);
}

std::uint64_t MixedTransport::posted_bytes_min(ConnId conn) const {
  const Route below = Below(conn);
  return below.transport->posted_bytes_min(below.conn);
}

void MixedTransport::PostReceive(ConnId conn, std::uint64_t token, std::span<std::byte> into) {
  const Route below = Below(conn);
  below.transport->PostReceive(below.conn, token, into);
}

void MixedTransport::Admit(ConnId conn) {
  const Route route = Below(conn);
  route.transport->Admit(route.conn);
}

bool MixedTransport::own_user(ConnId conn) const {
  const Route route = Below(conn);
  return route.transport->own_user(route.conn);
}

bool MixedTransport::Hold(ConnId conn) {
  const Route route = Below(conn);
  return route.transport->Hold(route.conn);
}

void MixedTransport::Release(ConnId conn) {
  const Route route = Below(conn);
  route.transport->Release(route.conn);
}

void MixedTransport::EndReceive(ConnId conn, std::uint64_t token) {
  const Route below = Below(conn);
  below.transport->EndReceive(below.conn, token);
}

// ---- events ----

void MixedTransport::Events::OnAccepted(ConnId conn) {
  transport_->events_->OnAccepted(Outer(conn, way_));
}

bool MixedTransport::Events::MayAccept(absl::Duration* pause) {
  return transport_->events_->MayAccept(pause);
}

void MixedTransport::Events::OnOpened(ConnId conn) {
  ConnId outer = 0;
  if (transport_->OnOpenedOver(way_, conn, &outer)) transport_->events_->OnOpened(outer);
}

void MixedTransport::Events::OnArrival(ConnId conn, Arrival arrival) {
  transport_->events_->OnArrival(transport_->OuterOf(way_, conn), std::move(arrival));
}

std::shared_ptr<const PostedReceive> MixedTransport::Events::PostedFor(
    ConnId conn, std::span<const std::byte> head, std::uint64_t bytes) {
  return transport_->events_->PostedFor(transport_->OuterOf(way_, conn), head, bytes);
}

void MixedTransport::Events::OnClosed(ConnId conn, const absl::Status& why) {
  ConnId outer = 0;
  if (transport_->OnClosedOver(way_, conn, why, &outer)) transport_->events_->OnClosed(outer, why);
}

void MixedTransport::Events::OnHandshakeFailed(const std::string& address,
                                               const absl::Status& why) {
  transport_->events_->OnHandshakeFailed(address, why);
}

}  // namespace leeway::van
