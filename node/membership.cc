#include "node/membership.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "node/join_message.h"
#include "node/membership_impl.h"
#include "node/scheduler_url.h"
#include "runtime/base/mutants.h"
#include "runtime/log/log.h"
#include "van/address/reason.h"

namespace leeway::node {
namespace {

using runtime::TimerId;

constexpr absl::Duration kWaitingLogInterval = absl::Seconds(10);
// By then an attempt to connect has come to nothing, and the line can say why.
constexpr absl::Duration kWaitingLogFirst = absl::Seconds(3);
// Join and Leave are said again sooner than other things: until it is welcome a node does not beat,
// and a scheduler that ends waits only a little for those that leave.
constexpr absl::Duration kResendInterval = absl::Milliseconds(250);
// The van gives up connecting first, since its reason says more.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(50);
constexpr absl::Duration kRedialTimeout = absl::Seconds(5);
constexpr absl::Duration kFirstDialTimeout = absl::Seconds(2);

// Whether connecting again may help. What is not about the network (another protocol version,
// another cluster) stays as it is. A name that is not known may be soon.
bool MayHeal(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

}  // namespace

Membership::Impl::Impl(Setup setup, Listener* listener)
    : setup_(std::move(setup)),
      loop_(setup_.loop),
      listener_(std::make_shared<Listener*>(listener)),
      link_(SchedulerUrl(setup_.config.scheduler), loop_, this) {}

void Membership::Impl::Start() {
  van::Identity identity;
  identity.role = setup_.role;
  identity.incarnation = setup_.incarnation;
  state_ = State::kJoining;
  started_ = loop_->Now();
  deadline_timer_ =
      loop_->After(setup_.config.connect_timeout + kDeadlineSlack, [this] { JoinTimedOut(); });
  log_timer_ = loop_->After(kWaitingLogFirst, [this] { LogWaiting(); });
  Resend();
  link_.Start(setup_.factory, identity, van::LimitsFrom(setup_.config));
}

absl::Status Membership::Impl::Send(const proto::AnyMessage& message) {
  if (state_ != State::kMember) {
    return absl::FailedPreconditionError(
        absl::StrCat("not a member of the cluster of the scheduler at ", url()));
  }
  return link_.Send(message);
}

void Membership::Impl::AckMap(std::uint64_t version) {
  acknowledged_ = std::max(acknowledged_, version);
  SendMapAck();
}

void Membership::Impl::AskForMap() {
  if (state_ == State::kMember) link_.SendQuietly(proto::MapAck{0});
}

void Membership::Impl::Leave(absl::Duration timeout, LeaveDone done, std::string reason) {
  leave_reason_ = std::move(reason);
  if (state_ == State::kLeaving) {
    PostDone(std::move(done), absl::FailedPreconditionError("this node is leaving already"));
  } else if (state_ == State::kIdle || state_ == State::kOver) {
    PostDone(std::move(done), over_);
  } else {
    const bool unheard = state_ == State::kJoining && !link_.up();
    state_ = State::kLeaving;
    leave_done_ = std::move(done);
    if (unheard) {
      End(absl::OkStatus());  // nobody knows of this node
      return;
    }
    loop_->Cancel(deadline_timer_);
    if (runtime::Planted<"leaves-without-end">()) timeout = absl::Hours(1000);
    deadline_timer_ = loop_->After(timeout, [this, timeout] {
      End(absl::DeadlineExceededError(
          absl::StrCat("the scheduler at ", url(), " has not acknowledged within ",
                       absl::FormatDuration(timeout), " that this node leaves")));
    });
    loop_->Cancel(resend_timer_);
    Resend();
  }
}

// ---- the connection ----

// Often rather than long: the scheduler may be back at another address, and who was to answer may
// never have heard.
absl::Duration Membership::Impl::Patience() const {
  if (state_ != State::kJoining) return std::min(kRedialTimeout, setup_.config.failure_timeout);
  const bool first = loop_->Now() - started_ < kFirstDialTimeout;
  return std::clamp(TimeToJoin(), absl::Milliseconds(1),
                    first ? kFirstDialTimeout : kRedialTimeout);
}

absl::Duration Membership::Impl::TimeToJoin() const {
  return setup_.config.connect_timeout - (loop_->Now() - started_);
}

void Membership::Impl::OnLinkUp() {
  joined_here_ = false;
  not_yet_ = absl::OkStatus();
  if (std::exchange(redialling_, false)) {
    runtime::LogInfo("connected to the scheduler at ", url(), " again");
  }
  if (heartbeat_ != nullptr && !runtime::Planted<"heartbeats-not-redirected">())
    heartbeat_->Redirect(url());
  SayWhatIsDue();
}

void Membership::Impl::OnLinkDown(const absl::Status& why) {
  if (state_ == State::kLeaving && why.ok()) {
    End(absl::OkStatus());  // the scheduler has ended in order
  } else if (state_ == State::kJoining && !MayHeal(why)) {
    End(Blame(why));
  } else if (state_ == State::kJoining && TimeToJoin() <= absl::ZeroDuration()) {
    JoinTimedOut();
  } else if (state_ == State::kMember && why.code() == absl::StatusCode::kFailedPrecondition) {
    // The scheduler answers, but wants to know nothing of this node: it was started anew.
    End(Blame(why));
  } else {
    if (state_ != State::kJoining && !std::exchange(redialling_, true)) {
      runtime::LogInfo("the connection to the scheduler at ", url(), " broke (", why.message(),
                       "); connecting again");
    }
    link_.ConnectAgain();  // OnSilence decides how long this may go on
  }
}

// While the scheduler is away somebody else may have taken its address.
void Membership::Impl::OnNoScheduler(const absl::Status& what) {
  if (state_ != State::kMember) return End(what);
  link_.DropAndConnectAgain(what);
}

void Membership::Impl::OnSchedulerMoved(const proto::SchedulerMoved& moved) {
  if (state_ != State::kMember && state_ != State::kLeaving) return;
  if (moved.cluster != welcome_.cluster && !runtime::Planted<"any-scheduler-followed">()) return;
  link_.TryAt(SchedulerUrl(moved.address));
}

std::string Membership::Impl::DescribeScheduler() const {
  std::string text = absl::StrCat("the scheduler at ", url());
  if (silent_since_.has_value()) {
    const absl::Duration silent = loop_->Now() - *silent_since_;
    absl::StrAppend(&text, " has been silent for ",
                    absl::FormatDuration(absl::Floor(silent, absl::Milliseconds(100))));
  } else if (!link_.up()) {
    absl::StrAppend(&text, " cannot be reached");
    if (!link_.trouble().ok()) absl::StrAppend(&text, " (", link_.trouble().message(), ")");
  }
  return text;
}

// What the scheduler has not answered on this connection.
void Membership::Impl::SayWhatIsDue() {
  if (state_ == State::kLeaving) {
    link_.SendQuietly(proto::Leave{leave_reason_});
  } else if (!joined_here_) {
    link_.SendQuietly(MakeJoin(setup_.config, setup_.role, setup_.endpoints));
  }
}

void Membership::Impl::Resend() {
  if (state_ != State::kLeaving || !runtime::Planted<"leave-said-once">()) SayWhatIsDue();
  // The scheduler lives, or this node would be told of its silence; so it is the connection.
  if (state_ == State::kMember && !joined_here_ && !runtime::Planted<"silent-link-kept">()) {
    link_.ConnectAnewIfSilentFor(absl::Milliseconds(welcome_.failure_timeout_ms));
  }
  const absl::Duration pause = std::min(kResendInterval, setup_.config.resend_interval);
  resend_timer_ = loop_->After(pause, [this] { Resend(); });
}

// ---- waiting and ending ----

// In a line for people; empty: nothing is known.
std::string Membership::Impl::WhyNotIn() const {
  if (!link_.up()) return van::ReasonOf(link_.trouble());
  return not_yet_.ok() ? "it does not answer" : std::string(not_yet_.message());
}

void Membership::Impl::LogWaiting() {
  if (state_ == State::kJoining) {
    const absl::Duration waited = absl::Floor(loop_->Now() - started_, absl::Seconds(1));
    const std::string reason = WhyNotIn();
    runtime::LogInfo("waiting for the scheduler at ", url(), " (LEEWAY_SCHEDULER) for ",
                     absl::FormatDuration(waited), reason.empty() ? "" : ": ", reason,
                     "; giving up after ", absl::FormatDuration(setup_.config.connect_timeout),
                     " (LEEWAY_CONNECT_TIMEOUT_MS)");
  } else if (maps_.newest() != nullptr && maps_.newest()->epoch > 0) {
    return;
  } else if (state_ == State::kMember) {
    runtime::LogInfo("waiting for all ", welcome_.num_servers, " servers and ",
                     welcome_.num_workers, " workers to join; the scheduler at ", url(),
                     " says who is missing");
  }
  log_timer_ = loop_->After(kWaitingLogInterval, [this] { LogWaiting(); });
}

void Membership::Impl::JoinTimedOut() {
  const std::string within = absl::StrCat(url(), " (LEEWAY_SCHEDULER) within ",
                                          absl::FormatDuration(setup_.config.connect_timeout),
                                          " (LEEWAY_CONNECT_TIMEOUT_MS)");
  if (link_.up() && !not_yet_.ok()) {
    return End(absl::DeadlineExceededError(absl::StrCat("this ", Name(setup_.role),
                                                        " was not taken in by the scheduler at ",
                                                        within, ": ", not_yet_.message())));
  }
  std::string text =
      absl::StrCat(link_.up() ? "no answer from the scheduler at " : "no scheduler at ", within);
  if (!link_.trouble().ok()) absl::StrAppend(&text, ": ", link_.trouble().message());
  End(absl::DeadlineExceededError(text));
}

absl::Status Membership::Impl::Blame(const absl::Status& why) const {
  return absl::Status(why.code(), absl::StrCat("cannot reach the scheduler at ", url(),
                                               " (LEEWAY_SCHEDULER): ", why.message()));
}

absl::Status Membership::Impl::Refusal(const absl::Status& why) const {
  const absl::StatusCode code = why.ok() ? absl::StatusCode::kFailedPrecondition : why.code();
  return absl::Status(code, absl::StrCat("the scheduler at ", url(), " refuses this ",
                                         Name(setup_.role), ": ", why.message()));
}

void Membership::Impl::StopTimers() {
  for (TimerId* timer : {&deadline_timer_, &log_timer_, &resend_timer_}) {
    loop_->Cancel(*timer);
    *timer = TimerId::kNone;
  }
}

// Ends it once, for whatever reason. The owner is told from the loop, so that it may destroy
// this object then.
void Membership::Impl::End(const absl::Status& why) {
  if (state_ == State::kOver) return;
  const bool leaving = state_ == State::kLeaving;
  state_ = State::kOver;
  over_ = why;
  StopTimers();
  heartbeat_.reset();
  link_.Close();
  if (leaving) {
    PostDone(std::move(leave_done_), why);
  } else {
    loop_->Post([listener = std::weak_ptr<Listener*>(listener_), why] {
      if (auto alive = listener.lock()) (*alive)->OnOver(why);
    });
  }
}

void Membership::Impl::PostDone(LeaveDone done, absl::Status status) {
  loop_->Post(
      [done = std::move(done), status = std::move(status)]() mutable { done(std::move(status)); });
}

// ---- the public face ----

Membership::Membership(Setup setup, Listener* listener)
    : impl_(std::make_unique<Impl>(std::move(setup), listener)) {}
Membership::~Membership() = default;
void Membership::Start() { impl_->Start(); }
absl::Status Membership::Send(const proto::AnyMessage& message) { return impl_->Send(message); }
void Membership::AckMap(std::uint64_t version) { impl_->AckMap(version); }
void Membership::AskForMap() { impl_->AskForMap(); }
void Membership::Leave(absl::Duration timeout, absl::AnyInvocable<void(absl::Status)> done,
                       std::string reason) {
  impl_->Leave(timeout, std::move(done), std::move(reason));
}
void Membership::OnSchedulerMoved(const proto::SchedulerMoved& moved) {
  impl_->OnSchedulerMoved(moved);
}
const std::string& Membership::scheduler_address() const { return impl_->url(); }
std::string Membership::DescribeScheduler() const { return impl_->DescribeScheduler(); }

}  // namespace leeway::node
