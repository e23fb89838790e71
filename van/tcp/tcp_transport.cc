#include "van/tcp/tcp_transport.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "van/session/session_van.h"
#include "van/tcp/tcp_socket.h"

namespace leeway::van {
namespace {

constexpr int kNewsPerTurn = 64;
// When everything has been read, the next poll need not call epoll, nor the one after it if an
// answer has just been sent: the loop sleeps on the epoll descriptor, which shows whatever has come
// since. For a loop that does not sleep this is a short delay.
constexpr int kPollsToSpare = 2;

}  // namespace

TcpTransport::TcpTransport(runtime::Loop* loop, const Limits& limits) {
  shared_.loop = loop;
  shared_.limits = limits;
  shared_.epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
}

TcpTransport::~TcpTransport() {
  shared_.lifetime.End();
  if (shared_.events != nullptr && shared_.epoll) shared_.loop->RemoveSource(this);
  listeners_.clear();
  for (const auto& [id, conn] : conns_) conn->Close();
  FlushBriefly();
  conns_.clear();
  shared_.owed.RunAll();
}

void TcpTransport::Start(TransportEvents* events) {
  shared_.events = events;
  if (shared_.epoll) shared_.loop->AddSource(this);
}

// ---- addresses ----

absl::StatusOr<std::string> TcpTransport::Listen(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(TcpListening listening, ListenOnTcp(address));
  listeners_.push_back({listening.advertised, std::move(listening.fd)});
  if (WatchListener(listeners_.size() - 1)) return listeners_.back().address;
  listeners_.pop_back();
  return CannotListen(address, EMFILE);
}

absl::StatusOr<ConnId> TcpTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const TcpAddress parsed, ParseTcpAddress(address));
  LEEWAY_RETURN_IF_ERROR(CheckDialable(address, parsed.host, parsed.port));
  LEEWAY_ASSIGN_OR_RETURN(const ResolvedHost host, ResolveToConnect(parsed.host));
  absl::StatusOr<UniqueFd> fd = ConnectTcp(host, parsed.port);
  absl::Status why = fd.status();
  if (fd.ok()) {
    const TcpConn* conn = Add(/*dialled=*/true, *std::move(fd), std::string(address));
    if (conn != nullptr) return conn->id;
    why = runtime::OutOfDescriptors();
  }
  failed_dials_.emplace_back(next_conn_, std::move(why));
  return next_conn_++;
}

std::string TcpTransport::AddressOf(ConnId conn) const {
  const TcpConn* found = Find(conn);
  return found == nullptr ? std::string() : found->address;
}

bool TcpTransport::taken(ConnId conn) const {
  const TcpConn* found = Find(conn);
  return found != nullptr && found->taken();
}

bool TcpTransport::same_host(ConnId conn) const {
  const TcpConn* found = Find(conn);
  return found != nullptr && found->within_machine();
}

std::optional<std::uint64_t> TcpTransport::ReceivedOfUnfinished(ConnId conn) const {
  const TcpConn* found = Find(conn);
  return found == nullptr ? std::nullopt : found->received_of_unfinished();
}

std::uint32_t TcpTransport::OffersOf(ConnId conn) const {
  const TcpConn* found = Find(conn);
  return found == nullptr ? 0 : found->offers();
}

// ---- connections ----

TcpConn* TcpTransport::Find(ConnId conn) const {
  const auto found = conns_.find(conn);
  return found == conns_.end() ? nullptr : found->second.get();
}

TcpConn* TcpTransport::Add(bool dialled, UniqueFd fd, std::string address) {
  auto conn =
      std::make_unique<TcpConn>(&shared_, next_conn_, dialled, std::move(fd), std::move(address));
  if (!conn->Start()) return nullptr;
  return (conns_[next_conn_++] = std::move(conn)).get();
}

void TcpTransport::RemoveFinished() {
  for (const ConnId conn : std::exchange(shared_.finished, {})) conns_.erase(conn);
}

void TcpTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  TcpConn* const found = Find(conn);
  if (found == nullptr) {
    return shared_.owed.Add(std::move(done), absl::UnavailableError("the connection broke"));
  }
  found->Send(prefix, message, std::move(done));
  if (shared_.to_flush.empty() || std::exchange(flush_planned_, true)) return;
  shared_.loop->BeforeSleep([this, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    flush_planned_ = false;
    FlushAll();
  });
}

// Sends the queued bytes of all connections. True if there were any.
bool TcpTransport::FlushAll() {
  const bool any = !shared_.to_flush.empty();
  for (const ConnId conn : shared_.to_flush) {
    if (TcpConn* found = Find(conn); found != nullptr) found->Flush();
  }
  shared_.to_flush.clear();
  return any;
}

void TcpTransport::Close(ConnId conn) {
  std::erase_if(failed_dials_, [conn](const auto& failed) { return failed.first == conn; });
  TcpConn* const found = Find(conn);
  if (found == nullptr || found->closed()) return;
  found->Close();
  if (found->finished()) return;
  shared_.loop->After(kSocketLinger, [this, conn, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    if (TcpConn* late = Find(conn); late != nullptr) late->Shut();
  });
}

void TcpTransport::Admit(ConnId conn) {
  if (TcpConn* const found = Find(conn); found != nullptr) found->Admit();
}

bool TcpTransport::Hold(ConnId conn) {
  TcpConn* const found = Find(conn);
  if (found != nullptr) found->Hold();
  return found != nullptr;
}

// Messages that were read already are delivered by a task, not within this call.
void TcpTransport::Release(ConnId conn) {
  TcpConn* const released = Find(conn);
  if (released == nullptr || !released->Release()) return;
  shared_.loop->Post([this, conn, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    if (TcpConn* const found = Find(conn); found != nullptr) found->Poll(EPOLLIN);
  });
}

bool TcpTransport::AllDelivered() const {
  return std::all_of(conns_.begin(), conns_.end(),
                     [](const auto& conn) { return conn.second->delivered(); });
}

// Waits for peers that are slow to take what was sent to them.
void TcpTransport::FlushBriefly() {
  const absl::Time until = shared_.loop->Now() + kSocketLinger;
  while (!AllDelivered() && shared_.loop->Now() < until) {
    // No event tells that the system has sent what it took, hence the short timeout.
    pollfd any{shared_.epoll.get(), POLLIN, 0};
    ::poll(&any, 1, /*timeout_ms=*/1);
    for (const auto& [id, conn] : conns_) conn->Poll(EPOLLOUT);
  }
  // Reads what is left: with unread bytes the system would reset the connections.
  for (const auto& [id, conn] : conns_) conn->Poll(0);
}

// ---- events ----

bool TcpTransport::Poll() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  if (polling_ == 0) RemoveFinished();
  ++polling_;
  if (!FlushAll() && polls_to_spare_ > 0) polls_to_spare_ = 1;
  bool any = polls_to_spare_ > 0 ? --polls_to_spare_, false : PollSockets();
  if (!alive) return true;
  for (const auto& [conn, why] : std::exchange(failed_dials_, {})) {
    any = true;
    shared_.events->OnClosed(conn, why);
    if (!alive) return true;
  }
  --polling_;
  if (shared_.owed.empty()) return any;
  shared_.owed.RunAll();
  return true;
}

bool TcpTransport::PollSockets() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  std::array<epoll_event, kNewsPerTurn> news;
  const int count = ::epoll_wait(shared_.epoll.get(), news.data(), kNewsPerTurn, /*timeout=*/0);
  bool any = false;
  bool more = count == kNewsPerTurn;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = news[static_cast<std::size_t>(i)];
    if ((event.data.u64 & kListenerTag) != 0) {
      if (AcceptFrom(event.data.u64 & ~kListenerTag)) any = more = true;
    } else if (TcpConn* conn = Find(event.data.u64); conn != nullptr) {
      const TcpConn::Polled polled = conn->Poll(event.events);
      any = any || polled.any;
      more = more || polled.more;
    }
    if (!alive) return true;
  }
  if (any && !more) polls_to_spare_ = kPollsToSpare;
  return any;
}

bool TcpTransport::AcceptFrom(std::size_t index) {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  bool any = false;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (absl::Duration pause; !shared_.events->MayAccept(&pause)) {
      PauseAccepting(index, pause);
      return any;
    }
    TcpAccepted accepted = AcceptTcp(listeners_[index].fd.get());
    if (accepted.outcome == TcpAccepted::Outcome::kOutOfDescriptors) {
      runtime::LogWarning("cannot accept connections on ", listeners_[index].address, ": ",
                          runtime::OutOfDescriptors().message());
      PauseAccepting(index, kAcceptPause);
    }
    if (accepted.outcome != TcpAccepted::Outcome::kAccepted) return any;
    any = true;
    const TcpConn* conn = Add(/*dialled=*/false, std::move(accepted.fd), accepted.peer);
    if (conn != nullptr) shared_.events->OnAccepted(conn->id);
    if (!alive) return true;
  }
  return any;
}

bool TcpTransport::WatchListener(std::size_t index) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListenerTag | index;
  return ::epoll_ctl(shared_.epoll.get(), EPOLL_CTL_ADD, listeners_[index].fd.get(), &event) == 0;
}

// Removes the listener from epoll for a while: a connection that waits to be accepted would keep
// the descriptor readable and the loop busy.
void TcpTransport::PauseAccepting(std::size_t index, absl::Duration pause) {
  ::epoll_ctl(shared_.epoll.get(), EPOLL_CTL_DEL, listeners_[index].fd.get(), nullptr);
  shared_.loop->After(pause, [this, index, alive = shared_.lifetime.watch()] {
    if (alive) WatchListener(index);
  });
}

std::unique_ptr<Factory> NewTcpFactory() {
  return NewSessionFactory(
      [](runtime::Loop* loop, const Limits& limits) {
        return std::make_unique<TcpTransport>(loop, limits);
      },
      AnyTcpAddress);
}

}  // namespace leeway::van
