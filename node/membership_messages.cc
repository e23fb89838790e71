#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "node/membership_impl.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"

namespace leeway::node {

void Membership::Impl::OnHeard(proto::AnyMessage message, absl::string_view text) {
  if (const auto* shutdown = std::get_if<proto::Shutdown>(&message)) {
    End(state_ == State::kLeaving ? absl::OkStatus() : shutdown->why);
  } else if (state_ == State::kLeaving) {
    if (std::holds_alternative<proto::LeaveAck>(message)) End(absl::OkStatus());
  } else if (const auto* welcome = std::get_if<proto::Welcome>(&message)) {
    OnWelcome(*welcome);
  } else if (const auto* refused = std::get_if<proto::Refused>(&message)) {
    if (absl::IsUnavailable(refused->why)) {
      not_yet_ = refused->why;
    } else {
      End(Refusal(refused->why));
    }
  } else if (state_ == State::kMember) {
    TakeAsMember(std::move(message), text);
  }
}

void Membership::Impl::TakeAsMember(proto::AnyMessage message, absl::string_view text) {
  if (auto* map = std::get_if<proto::ClusterMap>(&message)) {
    OnMap(std::make_shared<const proto::ClusterMap>(std::move(*map)));
  } else if (const auto* down = std::get_if<proto::NodeDown>(&message)) {
    OnNodeDown(*down);
  } else if (std::holds_alternative<proto::TableReply>(message) ||
             std::holds_alternative<proto::InstallTable>(message) ||
             std::holds_alternative<proto::InstallTableReply>(message) ||
             std::holds_alternative<proto::BarrierRelease>(message) ||
             std::holds_alternative<proto::StatusRequest>(message) ||
             std::holds_alternative<proto::CheckpointPrepare>(message) ||
             std::holds_alternative<proto::CheckpointCut>(message) ||
             std::holds_alternative<proto::RestoreShards>(message) ||
             std::holds_alternative<proto::LeadNow>(message)) {
    (*listener_)->OnSchedulerMessage(std::move(message));
  } else if (std::holds_alternative<proto::StatusReply>(message) ||
             std::holds_alternative<proto::AdminReply>(message)) {
    (*listener_)->OnSchedulerText(std::move(message), text);
  }
}

void Membership::Impl::OnWelcome(const proto::Welcome& welcome) {
  joined_here_ = true;
  if (state_ == State::kMember) {
    if (!runtime::Planted<"new-cluster-not-seen">() &&
        (welcome.cluster != welcome_.cluster || welcome.node != welcome_.node)) {
      End(absl::AbortedError(
          absl::StrCat("the scheduler at ", url(), " was started anew: the old cluster is gone")));
    }
    return;
  }
  state_ = State::kMember;
  welcome_ = welcome;
  loop_->Cancel(deadline_timer_);
  van::Identity identity = link_.identity();
  identity.node = welcome.node;
  identity.cluster = welcome.cluster;
  link_.SetIdentity(identity);
  StartHeartbeat(identity);
  (*listener_)->OnWelcome(welcome);
}

void Membership::Impl::StartHeartbeat(const van::Identity& identity) {
  Heartbeat::Setup setup;
  setup.scheduler = url();
  setup.scheduler_incarnation = link_.scheduler_incarnation();
  setup.identity = identity;
  setup.limits = van::LimitsFrom(setup_.config);
  // The scheduler's own settings, lest a node with others be taken for dead.
  setup.interval = absl::Milliseconds(std::max(1u, welcome_.heartbeat_interval_ms));
  setup.failure_timeout = absl::Milliseconds(std::max(1u, welcome_.failure_timeout_ms));
  setup.host = setup_.host;
  setup.owner = loop_;
  setup.factory = setup_.factory;
  Heartbeat::Reports reports;
  reports.silent = [this](absl::Duration silent) { OnSilence(silent); };
  reports.heard_again = [this] { HeardAgain(); };
  reports.answered = [this](absl::Time sent) { (*listener_)->OnSchedulerAnswered(sent); };
  reports.broken = [this] { (*listener_)->OnHeartbeatBroken(); };
  // A connection over which nothing is said does not notice that the other end is gone. Joining
  // again shows it: it breaks, or is answered.
  reports.connected_again = [this] {
    joined_here_ = joined_here_ && runtime::Planted<"other-scheduler-not-joined">();
  };
  reports.given_up = [this](const absl::Status& why) { End(why); };
  heartbeat_ = std::make_unique<Heartbeat>(std::move(setup), std::move(reports));
}

// Heartbeats without an answer are not silence if the scheduler was heard on this connection. The
// cluster goes on without a scheduler as long as nobody else fails, so it is given time to come
// back.
void Membership::Impl::OnSilence(absl::Duration heartbeats) {
  const absl::Duration silent = runtime::Planted<"link-not-counted-as-heard">()
                                    ? heartbeats
                                    : std::min(heartbeats, loop_->Now() - link_.heard());
  if (silent <= absl::Milliseconds(welcome_.failure_timeout_ms)) return HeardAgain();
  const absl::Duration patience = setup_.config.scheduler_timeout;
  if (silent > patience && !runtime::Planted<"silence-without-end">()) {
    return End(absl::UnavailableError(
        absl::StrCat("the scheduler at ", url(), " has not answered heartbeats for ",
                     absl::FormatDuration(patience), " (LEEWAY_SCHEDULER_TIMEOUT_MS)")));
  }
  // A connection that nothing comes over may lead to where the scheduler was.
  link_.ConnectAnewIfSilentFor(absl::Milliseconds(welcome_.failure_timeout_ms));
  if (silent_since_.has_value()) return;
  silent_since_ = loop_->Now() - silent;
  (*listener_)->OnSchedulerHeard(false);
  runtime::LogWarning("the scheduler at ", url(), " has not answered heartbeats for ",
                      absl::FormatDuration(silent), "; going on without it for ",
                      absl::FormatDuration(patience), " (LEEWAY_SCHEDULER_TIMEOUT_MS)");
}

void Membership::Impl::HeardAgain() {
  if (!silent_since_.has_value()) return;
  silent_since_.reset();
  if (!runtime::Planted<"heard-again-untold">()) (*listener_)->OnSchedulerHeard(true);
  runtime::LogInfo("the scheduler at ", url(), " is heard again");
}

void Membership::Impl::OnMap(std::shared_ptr<const proto::ClusterMap> map) {
  if (!maps_.Take(map)) {
    // Again: the scheduler has not heard that it was taken.
    if (acknowledged_ >= map->version && !runtime::Planted<"map-acknowledged-once">()) SendMapAck();
    return;
  }
  for (const proto::NodeDown& down : maps_.Untold()) {
    if (state_ == State::kMember) Tell(down);
  }
  if (state_ != State::kMember) return;
  // A server acknowledges when its data threads have the map; for a worker, having it is all.
  if (setup_.role != Role::kServer || runtime::Planted<"acknowledged-before-taken">())
    AckMap(map->version);
  (*listener_)->OnMap(std::move(map));
}

void Membership::Impl::OnNodeDown(const proto::NodeDown& down) {
  if (maps_.Take(down)) Tell(down);
}

void Membership::Impl::Tell(const proto::NodeDown& down) {
  if (down.node == welcome_.node && !runtime::Planted<"own-death-unheard">()) {
    End(absl::AbortedError(
        absl::StrCat("the scheduler at ", url(), " has given up on this node: ", down.reason)));
  } else {
    (*listener_)->OnNodeDown(down);
  }
}

void Membership::Impl::SendMapAck() {
  if (state_ == State::kMember && acknowledged_ > 0) {
    link_.SendQuietly(proto::MapAck{
        .version = acknowledged_,
        .clock = runtime::Planted<"acknowledged-without-clock">() ? 0 : (*listener_)->clock()});
  }
}

}  // namespace leeway::node
