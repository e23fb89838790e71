#include "compat/core/desk_client.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "compat/core/desk.h"
#include "node/joining.h"
#include "proto/encoding/encoding.h"
#include "runtime/base/format_duration.h"
#include "runtime/loop/real_loop.h"
#include "van/mixed/mixed_van.h"

namespace leeway::compat {
namespace {

constexpr absl::Duration kReconnectDelay = absl::Milliseconds(200);
constexpr absl::Duration kPingInterval = absl::Seconds(10);
// A connection over which nothing comes for so long, not even the answer to a ping, is made anew.
constexpr absl::Duration kSilencePatience = absl::Seconds(35);

}  // namespace

DeskClient::DeskClient(const Config& config)
    : config_(config),
      host_(runtime::NewRealHost(absl::ZeroDuration())),
      factory_(van::NewToolFactory(config_)),
      runner_(host_->Spawn("ps control")),
      loop_(runner_->loop()) {
  loop_->Post([this] {
    connect_timer_ = std::make_unique<runtime::Timer>(loop_, [this] { Connect(); });
    ping_timer_ = std::make_unique<runtime::Timer>(loop_, [this] { Ping(); });
    const van::Identity identity{.role = Role::kTool, .incarnation = host_->Random()};
    van_ = factory_->New(loop_, identity, van::LimitsFrom(config_), this);
    heard_ = loop_->Now();
    Connect();
    ping_timer_->SetAfter(kPingInterval);
  });
}

DeskClient::~DeskClient() {
  loop_->Post([this] {
    pending_.clear();
    connect_timer_.reset();
    ping_timer_.reset();
    van_.reset();
    runner_->Stop();
  });
  runner_->Join();
}

void DeskClient::Ask(std::string command, std::vector<std::string> arguments, Done done) {
  loop_->Post([this, done = std::move(done),
               admin = proto::Admin{.request = 0,
                                    .command = std::move(command),
                                    .arguments = std::move(arguments)}]() mutable {
    Begin(std::move(admin), std::move(done));
  });
}

void DeskClient::Begin(proto::Admin admin, Done done) {
  admin.request = next_++;
  Pending& pending = pending_[admin.request];
  pending = {std::move(admin), std::move(done)};
  if (up_) Send(pending.admin);
}

void DeskClient::Connect() {
  const absl::StatusOr<van::PeerId> peer =
      van_->Connect(node::SchedulerUrl(config_.scheduler), config_.connect_timeout);
  if (!peer.ok()) return Fail(peer.status());
  peer_ = *peer;
}

void DeskClient::Send(const proto::Admin& admin) {
  van::Message raw;
  raw.header = proto::Encode(admin);
  // One that cannot be sent is sent over the next connection.
  van_->Send(peer_, std::move(raw)).IgnoreError();
}

void DeskClient::OnPeerUp(van::PeerId /*peer*/, const van::Identity& /*identity*/) {
  up_ = true;
  heard_ = loop_->Now();
  for (const auto& [number, pending] : pending_) Send(pending.admin);
}

void DeskClient::OnPeerDown(van::PeerId /*peer*/, const absl::Status& why) {
  up_ = false;
  peer_ = 0;
  const absl::Duration silent = loop_->Now() - heard_;
  if (silent > config_.scheduler_timeout) {
    return Fail(absl::UnavailableError(
        absl::StrCat("the scheduler at ", config_.scheduler, " has not been there for ",
                     runtime::FormatDuration(silent), ": ", why.message())));
  }
  connect_timer_->SetAfter(kReconnectDelay);
}

void DeskClient::OnMessage(van::PeerId /*peer*/, van::Message raw) {
  const absl::StatusOr<proto::AnyMessage> message =
      proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  heard_ = loop_->Now();
  if (!message.ok()) return van_->Disconnect(peer_, message.status());
  const auto* const reply = std::get_if<proto::AdminReply>(&*message);
  if (reply == nullptr) return;
  const auto found = pending_.find(reply->request);
  if (found == pending_.end()) return;
  Done done = std::move(found->second.done);
  pending_.erase(found);
  if (!reply->result.ok()) return done(reply->result);
  done(std::string(raw.payload[0].text()));
}

// A scheduler's machine that is gone closes no connection.
void DeskClient::Ping() {
  ping_timer_->SetAfter(kPingInterval);
  if (!up_) return;
  if (loop_->Now() - heard_ > kSilencePatience) {
    return van_->Disconnect(peer_, absl::OkStatus());
  }
  Begin({.request = 0, .command = kPingCommand, .arguments = {}},
        [](const absl::StatusOr<std::string>&) {});
}

void DeskClient::Fail(const absl::Status& why) {
  for (auto& [number, pending] : std::exchange(pending_, {})) pending.done(why);
  connect_timer_->SetAfter(kPingInterval);
}

}  // namespace leeway::compat
