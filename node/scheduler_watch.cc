#include "node/scheduler_watch.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"

namespace leeway::node {

SchedulerWatch::SchedulerWatch(const Config* config, runtime::Host* host, runtime::Loop* loop,
                               van::Factory* factory, SchedulerLink* link, Owner* owner)
    : config_(config), host_(host), loop_(loop), factory_(factory), link_(link), owner_(owner) {}

void SchedulerWatch::Start(const proto::Welcome& welcome) {
  failure_timeout_ = absl::Milliseconds(welcome.failure_timeout_ms);
  Heartbeat::Setup setup;
  setup.scheduler = heartbeats_to_ = link_->url();
  setup.scheduler_incarnation = link_->scheduler_incarnation();
  setup.identity = link_->identity();
  setup.limits = van::LimitsFrom(*config_);
  setup.interval = absl::Milliseconds(std::max(1u, welcome.heartbeat_interval_ms));
  setup.failure_timeout = absl::Milliseconds(std::max(1u, welcome.failure_timeout_ms));
  setup.host = host_;
  setup.owner = loop_;
  setup.factory = factory_;
  Heartbeat::Reports reports;
  reports.silent = [this](absl::Duration silent) { OnSilence(silent); };
  reports.heard_again = [this] { HeardAgain(); };
  reports.answered = [this](absl::Time sent) { OnAnswer(sent); };
  reports.broken = [this] { owner_->OnHeartbeatBroken(); };
  reports.connected_again = [this] { owner_->OnHeartbeatConnectedAgain(); };
  reports.given_up = [this](const absl::Status& why) { owner_->OnSchedulerLost(why); };
  heartbeat_ = std::make_unique<Heartbeat>(std::move(setup), std::move(reports));
}

void SchedulerWatch::Redirect(const std::string& url) {
  if (heartbeat_ == nullptr) return;
  heartbeats_to_ = url;
  heartbeat_->Redirect(url);
}

// The scheduler is reached there. If the link still tries to connect, as it did long before that
// heartbeat left, its messages were lost or it tries elsewhere: until it is up this node hears of
// no map, and is taken for a member that does.
void SchedulerWatch::OnAnswer(absl::Time sent) {
  owner_->OnSchedulerAnswered(sent);
  link_->ConnectAnewIfTryingSinceBefore(sent - HandshakeMax(failure_timeout_), heartbeats_to_);
}

// Heartbeats without an answer are not silence if the scheduler was heard on the link.
void SchedulerWatch::OnSilence(absl::Duration heartbeats) {
  const absl::Duration silent = std::min(heartbeats, loop_->Now() - link_->heard());
  if (silent <= failure_timeout_) return HeardAgain();
  const absl::Duration patience = config_->scheduler_timeout;
  if (silent > patience) {
    return owner_->OnSchedulerLost(absl::UnavailableError(
        absl::StrCat("the scheduler at ", link_->url(), " has not answered heartbeats for ",
                     runtime::FormatDuration(patience), " (LEEWAY_SCHEDULER_TIMEOUT_MS)")));
  }
  // A connection that nothing comes over may lead to an address that the scheduler has left.
  link_->ConnectAnewIfSilentFor(failure_timeout_);
  if (silent_since_.has_value()) return;
  silent_since_ = loop_->Now() - silent;
  owner_->OnSchedulerHeard(false);
  runtime::LogWarning("the scheduler at ", link_->url(), " has not answered heartbeats for ",
                      runtime::FormatDuration(silent), "; going on without it for ",
                      runtime::FormatDuration(patience), " (LEEWAY_SCHEDULER_TIMEOUT_MS)");
}

void SchedulerWatch::HeardAgain() {
  if (!silent_since_.has_value()) return;
  silent_since_.reset();
  owner_->OnSchedulerHeard(true);
  runtime::LogInfo("the scheduler at ", link_->url(), " is heard again");
}

}  // namespace leeway::node
