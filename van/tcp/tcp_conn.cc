#include "van/tcp/tcp_conn.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "van/tcp/tcp_socket.h"
#include "van/transport.h"

namespace leeway::van {
namespace {

// A connection reads about this many bytes before the loop polls its others.
constexpr std::size_t kBytesReadPerTurn = 1 << 20;
// Queued bytes beyond this are sent at once rather than before the loop sleeps.
constexpr std::uint64_t kAtOnceBytes = 16 << 10;

constexpr char kBrokeOff[] =
    "it closed the connection before it had sent a greeting of our protocol";

}  // namespace

TcpConn::TcpConn(TcpShared* shared, ConnId conn, bool was_dialled, UniqueFd fd,
                 std::string conn_address)
    : id(conn),
      dialled(was_dialled),
      address(std::move(conn_address)),
      shared_(shared),
      fd_(std::move(fd)),
      stage_(dialled ? Stage::kConnecting : Stage::kGreeting),
      sender_(&shared->owed),
      // Messages of guests have no payload, so none takes memory.
      receiver_(TcpReceiver::Limits{.first_bytes_max = kGuestFrameBytesMax,
                                    .frame_bytes_max = kGuestFrameBytesMax,
                                    .payload_frames_max = 0},
                &shared->scratch,
                [this](std::span<const std::byte> head, std::uint64_t bytes) {
                  return shared_->events->PostedFor(id, head, bytes);
                }),
      admitted_(was_dialled) {
  if (admitted_) receiver_.SetLimits(MemberLimits());
  receiver_.VerifyChecksums(shared->limits.checksums != Limits::Checksums::kOff);
  const auto greeting = TcpGreeting(dialled ? 0 : shared_->offers);
  sender_.AddBytes(greeting.data(), greeting.size());
}

bool TcpConn::Start() {
  waits_for_room_ = stage_ == Stage::kConnecting;
  epoll_event event{};
  event.events = waits_for_room_ ? EPOLLOUT : EPOLLIN;
  event.data.u64 = id;
  watched_ = event.events;
  if (::epoll_ctl(shared_->epoll.get(), EPOLL_CTL_ADD, fd_.get(), &event) != 0) return false;
  if (!dialled) Flush();
  return true;
}

TcpReceiver::Limits TcpConn::MemberLimits() const {
  return {.first_bytes_max = kFirstBytesMax,
          .frame_bytes_max = FrameBytesMax(shared_->limits),
          .payload_frames_max = shared_->limits.payload_frames_max};
}

void TcpConn::Admit() {
  if (!std::exchange(admitted_, true)) receiver_.SetLimits(MemberLimits());
}

void TcpConn::Hold() {
  held_ = true;
  Watch(waits_for_room_);
}

bool TcpConn::Release() {
  if (!std::exchange(held_, false) || finished()) return false;
  Watch(waits_for_room_);
  return true;
}

void TcpConn::Watch(bool for_room) {
  waits_for_room_ = for_room;
  const std::uint32_t events = (held_ ? 0u : EPOLLIN) | (for_room ? EPOLLOUT : 0u);
  if (events == std::exchange(watched_, events)) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  ::epoll_ctl(shared_->epoll.get(), EPOLL_CTL_MOD, fd_.get(), &event);
}

// ---- events ----

TcpConn::Polled TcpConn::Poll(std::uint32_t news) {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  // Every event leads to some work.
  Polled polled{.any = !finished()};
  if (finished()) return polled;
  if (stage_ == Stage::kConnecting) {
    Connected();
  } else if ((news & EPOLLOUT) != 0) {
    Flush();
  }
  if (closed_) {
    DropInput();
    return polled;
  }
  if (stage_ == Stage::kGreeting) {
    ReadGreeting();
    if (!alive || closed_) return polled;
  }
  // epoll reports a broken connection whatever it is asked for, and would do so again and again.
  if (held_ && (news & (EPOLLERR | EPOLLHUP)) != 0) {
    Lose(absl::UnavailableError("the connection broke"));
  }
  // EPOLLOUT alone means that there is nothing to read.
  if (stage_ == Stage::kOpen && lost_.ok() && !held_ && (news & ~EPOLLOUT) != 0) {
    Receive(&polled.more);
    if (!alive || closed_) return polled;
  }
  if (!lost_.ok()) End();
  return polled;
}

void TcpConn::Connected() {
  if (const absl::Status status = TcpConnected(fd_.get()); !status.ok()) return Lose(status);
  stage_ = Stage::kGreeting;
  Watch(false);
  Flush();
}

void TcpConn::ReadGreeting() {
  while (greeted_ < greeting_.size()) {
    const ssize_t got =
        ::recv(fd_.get(), greeting_.data() + greeted_, greeting_.size() - greeted_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) {
      no_handshake_ = !dialled;
      return Lose(absl::UnavailableError(dialled ? kTookAndClosed : kBrokeOff));
    }
    greeted_ += static_cast<std::size_t>(got);
    if (const absl::Status status = CheckGreeting(); !status.ok()) {
      no_handshake_ = true;
      return Lose(status);
    }
  }
  stage_ = Stage::kOpen;
  if (WantsChecksums()) sender_.SendChecksums();
  if (dialled) shared_->events->OnOpened(id);
}

bool TcpConn::WantsChecksums() const {
  switch (shared_->limits.checksums) {
    case Limits::Checksums::kBetweenMachines:
      return !within_machine();
    case Limits::Checksums::kAll:
      return true;
    case Limits::Checksums::kOff:
      return false;
  }
  return true;
}

// Checks as much of the greeting as has come.
absl::Status TcpConn::CheckGreeting() const {
  const auto own = TcpGreeting();
  if (std::memcmp(greeting_.data(), own.data(), std::min(greeted_, kTcpVersionAt)) != 0) {
    return ForeignProtocol(std::span(greeting_).first(greeted_));
  }
  if (greeted_ < kTcpOffersAt) return absl::OkStatus();
  if (const auto version = Get<std::uint32_t>(greeting_.data() + kTcpVersionAt);
      version != kTcpVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("it speaks version ", version,
                     " of our protocol over TCP, and this is version ", kTcpVersion));
  }
  if (greeted_ == greeting_.size() &&
      ChecksumOf(greeting_.data(), kTcpGreetingChecksumAt) !=
          Get<std::uint32_t>(greeting_.data() + kTcpGreetingChecksumAt)) {
    return absl::DataLossError("the checksum of its greeting does not match");
  }
  return absl::OkStatus();
}

// May be called again for the same connection from within an event: then the inner call goes on
// delivering in order.
void TcpConn::Receive(bool* more) {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  ++receiving_;
  bool drained = false;
  std::size_t taken = 0;
  while (lost_.ok()) {
    HandOver();
    if (!alive) return;
    if (closed_ || held_ || drained || !lost_.ok()) break;
    if (taken >= kBytesReadPerTurn) {
      *more = true;
      break;
    }
    std::array<iovec, 2> places;
    msghdr message{};
    message.msg_iov = places.data();
    message.msg_iovlen = static_cast<std::size_t>(receiver_.Places(&places));
    std::size_t room = 0;
    for (std::size_t i = 0; i < message.msg_iovlen; ++i) room += places[i].iov_len;
    const ssize_t got = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      Lose(absl::UnavailableError("the connection broke"));
      break;
    }
    receiver_.Took(static_cast<std::size_t>(got));
    taken += static_cast<std::size_t>(got);
    // Within a large frame, more bytes are about to come: the other side is still writing it.
    drained = static_cast<std::size_t>(got) < room && !receiver_.in_large_frame();
  }
  if (--receiving_ == 0) receiver_.Rest();
}

// Delivers the complete messages.
void TcpConn::HandOver() {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  while (true) {
    const absl::StatusOr<bool> complete = receiver_.Next();
    if (!complete.ok()) return Lose(complete.status());
    if (!*complete) return;
    Arrival arrival = receiver_.TakeArrival();
    shared_->events->OnArrival(id, std::move(arrival));
    if (!alive || closed_ || held_) return;
  }
}

void TcpConn::End() {
  const runtime::Lifetime::Watch alive = shared_->lifetime.watch();
  const absl::Status why = lost_;
  closed_ = true;
  Shut();
  if (no_handshake_) shared_->events->OnHandshakeFailed(address, why);
  if (alive) shared_->events->OnClosed(id, why);
}

// ---- sending ----

void TcpConn::Send(const Prefix& prefix, const Message& message, SendDone done) {
  if (stage_ != Stage::kOpen || closed_ || !lost_.ok()) {
    shared_->owed.Add(std::move(done),
                      absl::UnavailableError(absl::StrCat(address, ": the connection broke")));
    return;
  }
  sender_.Add(prefix, message, std::move(done));
  if (waits_for_room_) return;
  if (sender_.waiting_bytes() >= kAtOnceBytes) return Flush();
  if (!std::exchange(in_flush_list_, true)) shared_->to_flush.push_back(id);
}

void TcpConn::Flush() {
  in_flush_list_ = false;
  if (stage_ == Stage::kConnecting || stage_ == Stage::kShut) return;
  switch (sender_.Write(fd_.get())) {
    case TcpSender::Wrote::kAll:
      Watch(false);
      if (closed_ && !std::exchange(said_end_, true)) ::shutdown(fd_.get(), SHUT_WR);
      return;
    case TcpSender::Wrote::kMuch:
    case TcpSender::Wrote::kFull:
      Watch(true);
      return;
    case TcpSender::Wrote::kBroken:
      // The reading side reports the end, after all that came before it.
      sender_.Fail(absl::UnavailableError(absl::StrCat(address, ": the connection broke")));
      ::shutdown(fd_.get(), SHUT_RDWR);
      Watch(false);
      return;
  }
}

// ---- the end ----

void TcpConn::Close() {
  if (std::exchange(closed_, true)) return;
  if (stage_ != Stage::kOpen || !lost_.ok()) return Shut();
  Flush();
}

void TcpConn::DropInput() {
  TcpScratch::Memory memory = shared_->scratch.Take();
  std::size_t taken = 0;
  while (!finished() && taken < kBytesReadPerTurn) {
    const ssize_t got = ::recv(fd_.get(), memory.get(), TcpScratch::kBytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) Shut();
    taken += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  shared_->scratch.GiveBack(std::move(memory));
}

bool TcpConn::delivered() const {
  return finished() || (sender_.waiting_bytes() == 0 && TcpUnsentBytes(fd_.get()) == 0);
}

void TcpConn::Shut() {
  if (stage_ == Stage::kShut) return;
  stage_ = Stage::kShut;
  closed_ = true;
  sender_.Fail(absl::UnavailableError(absl::StrCat(address, ": the connection broke")));
  fd_ = UniqueFd();  // closing it also removes it from epoll
  shared_->finished.push_back(id);
}

// ---- peers of other protocols ----

namespace {

constexpr std::array<absl::string_view, 7> kHttpBegins = {
    "GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "CONNECT ", "PRI * HTTP/2"};
constexpr absl::string_view kTlsBegins("\x16\x03", 2);  // a TLS handshake record
constexpr absl::string_view kZmtpBegins("\xff", 1);

}  // namespace

absl::Status ForeignProtocol(std::span<const std::byte> first) {
  const absl::string_view bytes(reinterpret_cast<const char*>(first.data()), first.size());
  const auto begins = [bytes](absl::string_view start) { return absl::StartsWith(bytes, start); };
  if (std::any_of(kHttpBegins.begin(), kHttpBegins.end(), begins)) {
    return absl::FailedPreconditionError(
        "it speaks HTTP, as a web browser or a health check does; this port is for Leeway's nodes "
        "and tools (leeway status)");
  }
  if (begins(kTlsBegins)) {
    return absl::FailedPreconditionError(
        "it speaks TLS, which Leeway does not: is a proxy or a service mesh between the nodes?");
  }
  if (begins(kZmtpBegins)) {
    return absl::FailedPreconditionError(
        "it does not speak our protocol over TCP but, it seems, ZeroMQ's: both ends must have the "
        "same LEEWAY_VAN");
  }
  return absl::FailedPreconditionError(
      "it does not speak our protocol over TCP: both ends must have the same LEEWAY_VAN");
}

}  // namespace leeway::van
