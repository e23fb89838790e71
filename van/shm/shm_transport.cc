#include "van/shm/shm_transport.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/descriptors.h"
#include "runtime/base/prefixed.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "runtime/memory/shared_memory.h"
#include "van/session/session_van.h"

namespace leeway::van {
namespace {

constexpr absl::string_view kScheme = "shm://";
// A loop that never sleeps polls the sockets once in this many rounds, to see those that have
// ended.
constexpr unsigned kPollsPerSocketLook = 64;

}  // namespace

ShmTransport::ShmTransport(runtime::Loop* loop, const Limits& limits, const ShmSizes& sizes) {
  shared_.loop = loop;
  shared_.limits = limits;
  shared_.sizes = sizes;
  shared_.epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
}

ShmTransport::~ShmTransport() {
  shared_.lifetime.End();
  runtime::SharedMemory::Forget(freed_listener_);
  if (shared_.events != nullptr && shared_.epoll) shared_.loop->RemoveSource(this);
  listeners_.clear();
  for (auto& conn : conns_) conn->Close();
  FlushBriefly();
  conns_.clear();
  shared_.owed.RunAll();
}

void ShmTransport::Start(TransportEvents* events) {
  shared_.events = events;
  if (shared_.epoll) shared_.loop->AddSource(this);
  HearOfFreedMemory();
}

// The peers have to unmap freed memory even if nothing is ever sent to them again.
void ShmTransport::HearOfFreedMemory() {
  freed_listener_ = runtime::SharedMemory::WhenFreed(
      [this, loop = shared_.loop, alive = shared_.lifetime.watch()] {
        loop->Post([this, alive] {
          if (!alive) return;
          for (const auto& conn : conns_) conn->OnMemoryFreed();
        });
      });
}

// ---- addresses ----

absl::StatusOr<std::string> ShmTransport::NameIn(absl::string_view address) {
  const bool plain = std::all_of(address.begin(), address.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  const absl::string_view name =
      absl::StartsWith(address, kScheme) ? address.substr(kScheme.size()) : absl::string_view();
  if (name.empty() || !plain || name.size() > kShmNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "' is not an address of shared memory: it must be shm://NAME, ",
                     "the name at most ", kShmNameBytesMax, " characters"));
  }
  return std::string(name);
}

absl::StatusOr<std::string> ShmTransport::Listen(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string name, NameIn(address));
  absl::StatusOr<UniqueFd> fd = ListenOnShmName(name);
  if (!fd.ok()) {
    return absl::Status(fd.status().code(), absl::StrCat("cannot listen on ", address, ": ",
                                                         std::string(fd.status().message())));
  }
  if (!Watch(fd->get(), kListenerTag | listeners_.size())) {
    return runtime::Prefixed(absl::StrCat("cannot listen on ", address),
                             runtime::OutOfDescriptors());
  }
  listeners_.push_back({std::string(address), *std::move(fd)});
  return std::string(address);
}

absl::StatusOr<ConnId> ShmTransport::TryDial(const std::string& name) {
  LEEWAY_ASSIGN_OR_RETURN(std::shared_ptr<ShmSocket> socket, ShmSocket::Connect(name));
  LEEWAY_RETURN_IF_ERROR(socket->CheckPeer().status());
  ShmConn* conn = Add(/*dialled=*/true, std::move(socket), absl::StrCat(kScheme, name));
  absl::Status status = conn->Greet();
  if (status.ok() && !Watch(conn->fd(), conn->id)) {
    status = runtime::OutOfDescriptors();
  }
  if (status.ok()) return conn->id;
  Close(conn->id);
  return status;
}

absl::StatusOr<ConnId> ShmTransport::Dial(absl::string_view address) {
  LEEWAY_ASSIGN_OR_RETURN(const std::string name, NameIn(address));
  absl::StatusOr<ConnId> conn = TryDial(name);
  if (conn.ok()) return conn;
  return DialInVain(conn.status());
}

ConnId ShmTransport::DialInVain(absl::Status why) {
  failed_dials_.emplace_back(next_conn_, std::move(why));
  return next_conn_++;
}

std::optional<std::uint64_t> ShmTransport::ReceivedOfUnfinished(ConnId conn) const {
  const ShmConn* found = Find(conn);
  return found == nullptr ? std::nullopt : found->received_of_unfinished();
}

std::string ShmTransport::AddressOf(ConnId conn) const {
  const ShmConn* found = Find(conn);
  return found == nullptr ? std::string() : found->address;
}

// ---- connections ----

bool ShmTransport::Watch(int fd, std::uint64_t tag) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = tag;
  return ::epoll_ctl(shared_.epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

ShmConn* ShmTransport::Find(ConnId conn) const {
  const auto found = by_id_.find(conn);
  return found == by_id_.end() ? nullptr : found->second;
}

ShmConn* ShmTransport::Add(bool dialled, std::shared_ptr<ShmSocket> socket, std::string address) {
  const ConnId id = next_conn_++;
  conns_.push_back(
      std::make_unique<ShmConn>(&shared_, id, dialled, std::move(socket), std::move(address)));
  by_id_[id] = conns_.back().get();
  return conns_.back().get();
}

void ShmTransport::Send(ConnId conn, const Prefix& prefix, Message message, SendDone done) {
  if (ShmConn* found = Find(conn); found != nullptr) {
    found->Send(prefix, std::move(message), std::move(done));
  } else {
    shared_.owed.Add(std::move(done), absl::UnavailableError("the connection broke"));
  }
}

void ShmTransport::Close(ConnId conn) {
  std::erase_if(failed_dials_, [conn](const auto& failed) { return failed.first == conn; });
  ShmConn* found = Find(conn);
  if (found == nullptr) return;
  found->Close();
  if (found->finished()) {
    by_id_.erase(conn);
    return;
  }
  shared_.loop->After(kSocketLinger, [this, conn, alive = shared_.lifetime.watch()] {
    if (!alive) return;
    if (ShmConn* late = Find(conn); late != nullptr) late->Shut();
  });
}

// True if there are any closed connections left.
bool ShmTransport::FlushClosed() {
  bool any = false;
  for (const auto& conn : conns_) {
    conn->FlushClosed();
    if (!conn->finished()) any = true;
  }
  return any;
}

// Waits for peers that are slow to take what was sent to them.
void ShmTransport::FlushBriefly() {
  const absl::Time until = shared_.loop->Now() + kSocketLinger;
  while (FlushClosed() && shared_.loop->Now() < until) {
    // A byte on the socket tells of room, and the end of the socket that the peer is gone.
    pollfd any{shared_.epoll.get(), POLLIN, 0};
    ::poll(&any, 1, /*timeout_ms=*/100);
    for (const auto& conn : conns_) conn->PollSocket();
  }
}

// ---- events ----

bool ShmTransport::Poll() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  if (polling_ == 0) RemoveFinished();
  ++polling_;
  bool any = false;
  if (shared_.busy_poll->TakeSlept() || ++polls_ % kPollsPerSocketLook == 0) any = PollSockets();
  if (!alive) return true;
  for (const auto& [conn, why] : std::exchange(failed_dials_, {})) {
    any = true;
    shared_.events->OnClosed(conn, why);
    if (!alive) return true;
  }
  if (PollConns()) any = true;
  if (!alive) return true;
  --polling_;
  if (shared_.owed.empty()) return any;
  shared_.owed.RunAll();
  return true;
}

bool ShmTransport::PollConns() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  bool any = false;
  // By index, because events may add connections.
  for (std::size_t i = 0; i < conns_.size(); ++i) {
    ShmConn* conn = conns_[i].get();
    if (conn->closed()) {
      conn->FlushClosed();
    } else if (conn->Poll()) {
      any = true;
      if (!alive) return true;
    }
  }
  return any;
}

void ShmTransport::RemoveFinished() {
  std::erase_if(conns_, [this](const auto& conn) {
    if (!conn->finished()) return false;
    by_id_.erase(conn->id);
    return true;
  });
}

bool ShmTransport::PollSockets() {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  std::array<epoll_event, 64> news;
  const int count =
      ::epoll_wait(shared_.epoll.get(), news.data(), static_cast<int>(news.size()), /*timeout=*/0);
  for (int i = 0; i < count && alive; ++i) {
    const std::uint64_t tag = news[static_cast<std::size_t>(i)].data.u64;
    if ((tag & kListenerTag) != 0) {
      AcceptFrom(tag & ~kListenerTag);
    } else if (ShmConn* conn = Find(tag); conn != nullptr) {
      conn->PollSocket();
    }
  }
  return count > 0;
}

void ShmTransport::AcceptFrom(std::size_t index) {
  const runtime::Lifetime::Watch alive = shared_.lifetime.watch();
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    bool out_of_descriptors = false;
    std::optional<UniqueFd> fd = AcceptShm(listeners_[index].fd.get(), &out_of_descriptors);
    if (out_of_descriptors) return PauseAccepting(index);
    if (!fd.has_value()) return;
    auto socket = std::make_shared<ShmSocket>(*std::move(fd));
    const absl::StatusOr<pid_t> process = socket->CheckPeer();
    const std::string address =
        absl::StrCat(listeners_[index].address, " (process ", process.value_or(0), ")");
    if (!process.ok()) {
      shared_.events->OnHandshakeFailed(address, process.status());
    } else if (!Watch(socket->fd(), next_conn_)) {
      shared_.events->OnHandshakeFailed(address, runtime::OutOfDescriptors());
    } else {
      shared_.events->OnAccepted(Add(/*dialled=*/false, std::move(socket), address)->id);
    }
    if (!alive) return;
  }
}

// Removes the listener from epoll for a while: a connection that waits to be accepted would keep
// the descriptor readable and the loop busy.
void ShmTransport::PauseAccepting(std::size_t index) {
  runtime::LogWarning("cannot accept connections on ", listeners_[index].address, ": ",
                      runtime::OutOfDescriptors().message());
  ::epoll_ctl(shared_.epoll.get(), EPOLL_CTL_DEL, listeners_[index].fd.get(), nullptr);
  shared_.loop->After(kAcceptPause, [this, index, alive = shared_.lifetime.watch()] {
    if (alive) Watch(listeners_[index].fd.get(), kListenerTag | index);
  });
}

// ---- the factory ----

namespace {

// Process ids are unique in one PID namespace, names in a network namespace. An address in this
// process's memory tells equal process ids apart well enough; if it does not, Listen fails.
std::string AnyShmAddress(absl::string_view /*host*/) {
  static std::atomic<std::uint64_t> next{1};
  return absl::StrCat("shm://", ::getpid(), ".", next.fetch_add(1), ".",
                      absl::Hex(reinterpret_cast<std::uintptr_t>(&next)));
}

}  // namespace

std::unique_ptr<Factory> NewShmFactory(std::uint64_t arena_bytes) {
  ShmSizes sizes;
  sizes.arena_units = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(arena_bytes / kShmUnitBytes, 1, kShmUnitsMax));
  return NewSessionFactory(
      [sizes](runtime::Loop* loop, const Limits& limits) {
        return std::make_unique<ShmTransport>(loop, limits, sizes);
      },
      AnyShmAddress, ShmViable);
}

}  // namespace leeway::van
