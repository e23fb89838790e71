#include "node/scheduler_link.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/codec.h"
#include "runtime/log.h"

namespace leeway::node {
namespace {

constexpr absl::Duration kReconnectPause = absl::Milliseconds(500);

}  // namespace

SchedulerLink::SchedulerLink(std::string url, runtime::Loop* loop, Owner* owner)
    : url_(std::move(url)), loop_(loop), owner_(owner) {}

SchedulerLink::~SchedulerLink() { loop_->Cancel(connect_timer_); }

void SchedulerLink::Start(van::Factory* factory, const van::Identity& identity,
                          const van::Limits& limits) {
  van_ = factory->New(loop_, identity, limits, this);
  Connect();
}

void SchedulerLink::Connect() {
  connect_timer_ = runtime::TimerId::kNone;
  absl::StatusOr<van::PeerId> peer = van_->Connect(url_, owner_->Patience());
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
  loop_->Cancel(connect_timer_);
  connect_timer_ = loop_->After(kReconnectPause, [this] { Connect(); });
}

void SchedulerLink::Close() {
  if (std::exchange(closed_, true)) return;
  loop_->Cancel(std::exchange(connect_timer_, runtime::TimerId::kNone));
  up_ = false;
  if (peer_ != 0) van_->Disconnect(std::exchange(peer_, 0), absl::OkStatus());
}

void SchedulerLink::OnPeerUp(van::PeerId peer, const van::Identity& identity) {
  if (closed_ || peer != peer_) return;
  if (identity.role != Role::kScheduler) {
    owner_->OnNoScheduler(absl::FailedPreconditionError(absl::StrCat(
        "LEEWAY_SCHEDULER=", url_, " is a ", Name(identity.role), ", not a scheduler")));
    return;
  }
  up_ = true;
  up_since_ = loop_->Now();
  owner_->OnLinkUp();
}

void SchedulerLink::OnPeerDown(van::PeerId peer, const absl::Status& why) {
  if (closed_ || peer != peer_) return;
  flapping_ = !up_ || loop_->Now() - up_since_ < kReconnectPause;
  Down(why);
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
    runtime::LogWarning("malformed message from the scheduler at ", url_, ": ",
                        message.status().message());
    van_->Disconnect(peer, message.status());
    return;
  }
  heard_ = loop_->Now();
  owner_->OnHeard(*std::move(message));
}

absl::Status SchedulerLink::Send(const proto::AnyMessage& message) {
  if (peer_ == 0) {
    return absl::UnavailableError(absl::StrCat("no connection to the scheduler at ", url_));
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
