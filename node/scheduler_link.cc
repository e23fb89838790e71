#include "node/scheduler_link.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "runtime/log/log.h"
#include "runtime/loop/backoff.h"

namespace leeway::node {
namespace {

// After a connection that breaks sooner the next one is made after a pause.
constexpr absl::Duration kSteady = absl::Milliseconds(500);
constexpr absl::Duration kPauseMin = absl::Milliseconds(250);
constexpr absl::Duration kPauseMax = absl::Seconds(2);
// Addresses that are remembered: not every SchedulerMoved is followed for ever.
constexpr std::size_t kAddressesMax = 4;
// Connections in a row that bring bytes, but never a hello.
constexpr int kGarbledBeforeHelloMax = 3;

// True for the errors with which the van, and this link, end a connection of undecodable bytes.
bool IsGarbled(const absl::Status& why) {
  return absl::IsInvalidArgument(why) || absl::IsDataLoss(why);
}

}  // namespace

SchedulerLink::SchedulerLink(std::string url, runtime::Loop* loop, Owner* owner)
    : home_(url),
      urls_{std::move(url)},
      loop_(loop),
      owner_(owner),
      pause_(kPauseMin),
      connect_timer_(loop, [this] { Connect(); }) {}

void SchedulerLink::Start(van::Factory* factory, const van::Identity& identity,
                          const van::Limits& limits) {
  van_ = factory->New(loop_, identity, limits, this);
  Connect();
}

void SchedulerLink::Connect() {
  trying_since_ = loop_->Now();
  absl::StatusOr<van::PeerId> peer = van_->Connect(url(), owner_->Patience());
  if (peer.ok()) {
    peer_ = *peer;
  } else {
    flapping_ = true;
    Down(peer.status());
  }
}

void SchedulerLink::ConnectAgain() {
  if (closed_ || peer_ != 0) return;
  if (!flapping_) return Connect();
  std::rotate(urls_.begin(), urls_.begin() + 1, urls_.end());
  const bool several = urls_.size() > 1;
  const absl::Duration pause = several ? std::min(pause_, owner_->Patience()) : pause_;
  connect_timer_.SetAfter(runtime::Jittered(pause, loop_));
  pause_ = runtime::NextPause(pause_, kPauseMax);
}

void SchedulerLink::DropAndConnectAgain(const absl::Status& why) {
  if (peer_ != 0) van_->Disconnect(std::exchange(peer_, 0), absl::OkStatus());
  up_ = false;
  flapping_ = true;
  trouble_ = why;
  ConnectAgain();
}

void SchedulerLink::ConnectAnewIfSilentFor(absl::Duration patience) {
  if (!up_ || loop_->Now() - std::max(heard_, up_since_) <= patience) return;
  DropAndConnectAgain(absl::UnavailableError("nothing has come from there"));
}

void SchedulerLink::ConnectAnewIfTryingSinceBefore(absl::Time limit, const std::string& url) {
  if (peer_ != 0 && !up_ && trying_since_ < limit) TryAt(url);
}

void SchedulerLink::TryAt(const std::string& url) {
  if (closed_ || van_ == nullptr || (up_ && url == urls_.front())) return;
  std::erase(urls_, url);
  urls_.insert(urls_.begin() + (up_ ? 1 : 0), url);
  // The first address is never dropped.
  if (urls_.size() > kAddressesMax) urls_.erase(urls_.end() - (urls_.back() == home_ ? 2 : 1));
  if (up_) return;
  connect_timer_.Clear();
  if (peer_ != 0) van_->Disconnect(std::exchange(peer_, 0), absl::OkStatus());
  pause_ = kPauseMin;
  Connect();
}

void SchedulerLink::Close() {
  if (std::exchange(closed_, true)) return;
  connect_timer_.Clear();
  up_ = false;
  if (peer_ != 0) van_->Disconnect(std::exchange(peer_, 0), absl::OkStatus());
}

void SchedulerLink::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  if (closed_ || peer != peer_) return;
  if (identity.role != Role::kScheduler) {
    owner_->OnNoScheduler(absl::FailedPreconditionError(absl::StrCat(
        "LEEWAY_SCHEDULER=", url(), " is a ", Name(identity.role), ", not a scheduler")));
    return;
  }
  scheduler_incarnation_ = identity.incarnation;
  up_ = true;
  up_since_ = loop_->Now();
  pause_ = kPauseMin;
  owner_->OnLinkUp();
}

void SchedulerLink::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  if (closed_ || peer != peer_) return;
  flapping_ = !up_ || loop_->Now() - up_since_ < kSteady;
  Down(IsGarbled(why) ? Garbled(why) : why);
}

// A network or a program may damage bytes once, so one such connection is no reason to give up. A
// peer that never sends anything else speaks another protocol.
absl::Status SchedulerLink::Garbled(const absl::Status& why) {
  garbled_before_hello_ = up_ ? 0 : garbled_before_hello_ + 1;
  if (std::has_single_bit(++garbled_)) {
    runtime::LogWarning("what came from the scheduler at ", url(), " was not understood (",
                        garbled_,
                        " times so far), so the connection is made anew: ", why.message());
  }
  if (garbled_before_hello_ >= kGarbledBeforeHelloMax) return why;
  return absl::UnavailableError(absl::StrCat("what came was not understood: ", why.message()));
}

void SchedulerLink::Down(const absl::Status& why) {
  peer_ = 0;
  up_ = false;
  trouble_ = why;
  owner_->OnLinkDown(why);
}

void SchedulerLink::OnMessage(van::PeerId peer, van::Message raw) {
  if (closed_ || peer != peer_) return;
  absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  if (!message.ok()) {
    van_->Disconnect(peer, message.status());  // OnPeerDown names it
    return;
  }
  heard_ = loop_->Now();
  owner_->OnHeard(*std::move(message),
                  raw.payload.empty() ? absl::string_view() : raw.payload[0].text());
}

absl::Status SchedulerLink::Send(const proto::AnyMessage& message) {
  if (peer_ == 0) {
    return absl::UnavailableError(absl::StrCat("no connection to the scheduler at ", url()));
  }
  van::Message raw;
  raw.header = proto::Encode(message);
  return van_->Send(peer_, std::move(raw));
}

void SchedulerLink::SendQuietly(const proto::AnyMessage& message) {
  if (!up_) return;
  if (absl::Status sent = Send(message); !sent.ok()) {
    runtime::LogDebug(proto::NameOf(message), " not sent: ", sent.message());
  }
}

}  // namespace leeway::node
