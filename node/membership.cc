#include "node/membership.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "node/joining.h"
#include "node/map_follower.h"
#include "node/scheduler_link.h"
#include "node/scheduler_watch.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"
#include "runtime/loop/timer.h"
#include "van/address/tcp_address.h"

namespace leeway::node {
namespace {

constexpr absl::Duration kWaitingLogInterval = absl::Seconds(10);
// By then an attempt to connect has failed, and the line can say why.
constexpr absl::Duration kWaitingLogFirst = absl::Seconds(3);
// Join and Leave are resent sooner than other messages: a node sends no heartbeats before it is
// welcome, and a scheduler that ends waits only briefly for nodes that leave.
constexpr absl::Duration kResendInterval = absl::Milliseconds(250);
// The van gives up connecting first, since its reason says more.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(50);
constexpr absl::Duration kRedialTimeout = absl::Seconds(5);
constexpr absl::Duration kSharedDialTimeoutMin = absl::Milliseconds(250);  // of several addresses
constexpr absl::Duration kFirstDialTimeout = absl::Seconds(2);

// True if connecting again may help. Reasons that are not about the network (another protocol
// version, another cluster) do not go away; a host name that is unknown may become known.
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

class Membership::Impl final : private SchedulerLink::Owner, private SchedulerWatch::Owner {
 public:
  using LeaveDone = absl::AnyInvocable<void(absl::Status)>;

  Impl(Setup setup, Listener* listener);

  void Start();
  absl::Status Send(const proto::AnyMessage& message);
  void AckMap(std::uint64_t version);
  void AskForMap();
  void Leave(absl::Duration timeout, LeaveDone done, std::string reason);
  void OnSchedulerMoved(const proto::SchedulerMoved& moved);
  const std::string& url() const { return link_.url(); }
  std::string DescribeScheduler() const;

 private:
  enum class State { kIdle, kJoining, kMember, kLeaving, kOver };

  // ---- the connection ----
  absl::Duration Patience() const override;
  absl::Duration TimeToJoin() const;
  void OnLinkUp() override;
  void OnNoScheduler(const absl::Status& what) override;
  void OnLinkDown(const absl::Status& why) override;
  void SayWhatIsDue();
  void Resend();

  // ---- messages of the scheduler ----
  void OnHeard(proto::AnyMessage message, absl::string_view text) override;
  void TakeAsMember(proto::AnyMessage message, absl::string_view text);
  void OnWelcome(const proto::Welcome& welcome);
  void OnMap(std::shared_ptr<const proto::ClusterMap> map);
  void OnNodeDown(const proto::NodeDown& down);
  void Tell(const proto::NodeDown& down);
  void SendMapAck();

  // ---- the watch ----
  void OnSchedulerHeard(bool heard) override { (*listener_)->OnSchedulerHeard(heard); }
  void OnSchedulerAnswered(absl::Time sent) override { (*listener_)->OnSchedulerAnswered(sent); }
  void OnHeartbeatBroken() override { (*listener_)->OnHeartbeatBroken(); }
  void OnHeartbeatConnectedAgain() override;
  void OnSchedulerLost(const absl::Status& why) override { End(why); }

  // ---- waiting and ending ----
  void LogWaiting();
  void DeadlinePassed();
  void JoinTimedOut();
  std::string WhyNotIn() const;
  absl::Status Blame(const absl::Status& why) const;
  absl::Status Refusal(const absl::Status& why) const;
  void StopTimers();
  void End(const absl::Status& why);
  void PostDone(LeaveDone done, absl::Status status);

  const Setup setup_;
  runtime::Loop* const loop_;
  // Shared with calls on their way through the loop, which drop themselves once it is gone.
  const std::shared_ptr<Listener*> listener_;
  SchedulerLink link_;
  SchedulerWatch watch_;

  State state_ = State::kIdle;
  absl::Status over_;
  LeaveDone leave_done_;
  absl::Duration leave_timeout_;
  std::string leave_reason_;
  bool redialling_ = false;   // and that has been logged
  bool joined_here_ = false;  // the scheduler has answered Join on this connection
  absl::Status not_yet_;      // why the scheduler does not take this node in yet, as it said here
  absl::Time started_;
  proto::Welcome welcome_;
  MapFollower maps_;
  std::uint64_t acknowledged_ = 0;
  runtime::Timer deadline_timer_{setup_.loop, [this] { DeadlinePassed(); }};
  runtime::Timer log_timer_{setup_.loop, [this] { LogWaiting(); }};
  runtime::Timer resend_timer_{setup_.loop, [this] { Resend(); }};
};

Membership::Impl::Impl(Setup setup, Listener* listener)
    : setup_(std::move(setup)),
      loop_(setup_.loop),
      listener_(std::make_shared<Listener*>(listener)),
      link_(SchedulerUrl(setup_.config.scheduler), loop_, this),
      watch_(&setup_.config, setup_.host, loop_, setup_.factory, &link_, this) {}

void Membership::Impl::Start() {
  van::Identity identity;
  identity.role = setup_.role;
  identity.incarnation = setup_.incarnation;
  state_ = State::kJoining;
  started_ = loop_->Now();
  deadline_timer_.SetAfter(setup_.config.connect_timeout + kDeadlineSlack);
  log_timer_.SetAfter(kWaitingLogFirst);
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
      End(absl::OkStatus());  // the scheduler does not know of this node
      return;
    }
    leave_timeout_ = timeout;
    deadline_timer_.SetAfter(leave_timeout_);
    Resend();
  }
}

// ---- the connection ----

// The scheduler may have come back at any of several addresses, and takes this node for dead if it
// does not hear it for the failure timeout. Heartbeats do not prevent that: they go to the address
// where it was last joined. So the attempts of one round of all addresses take a third of the
// timeout together, and the pauses after them (SchedulerLink::ConnectAgain) another third, and up
// to a quarter more.
absl::Duration Membership::Impl::Patience() const {
  if (link_.addresses() > 1) {
    const absl::Duration round = absl::Milliseconds(welcome_.failure_timeout_ms) / 3;
    return std::clamp(round / link_.addresses(), kSharedDialTimeoutMin, kRedialTimeout);
  }
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
  watch_.Redirect(url());
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
    // The scheduler answers, but does not know this node: it was started anew.
    End(Blame(why));
  } else {
    if (state_ != State::kJoining && !std::exchange(redialling_, true)) {
      runtime::LogInfo("the connection to the scheduler at ", url(), " broke (", why.message(),
                       "); connecting again");
    }
    link_.ConnectAgain();  // the watch decides how long this may go on
  }
}

// While the scheduler is away another process may have taken its address.
void Membership::Impl::OnNoScheduler(const absl::Status& what) {
  if (state_ != State::kMember) return End(what);
  link_.DropAndConnectAgain(what);
}

void Membership::Impl::OnSchedulerMoved(const proto::SchedulerMoved& moved) {
  if (state_ != State::kMember && state_ != State::kLeaving) return;
  if (moved.cluster != welcome_.cluster) return;
  link_.TryAt(SchedulerUrl(moved.address));
}

std::string Membership::Impl::DescribeScheduler() const {
  std::string text = absl::StrCat("the scheduler at ", url());
  if (watch_.silent_since().has_value()) {
    const absl::Duration silent = loop_->Now() - *watch_.silent_since();
    absl::StrAppend(&text, " has been silent for ", runtime::FormatDuration(silent));
  } else if (!link_.up()) {
    absl::StrAppend(&text, " cannot be reached");
    if (!link_.trouble().ok()) absl::StrAppend(&text, " (", link_.trouble().message(), ")");
  }
  return text;
}

// Sends what the scheduler has not answered on this connection.
void Membership::Impl::SayWhatIsDue() {
  if (state_ == State::kLeaving) {
    link_.SendQuietly(proto::Leave{.reason = leave_reason_, .clock = (*listener_)->clock()});
  } else if (!joined_here_) {
    link_.SendQuietly(MakeJoin(setup_.config, setup_.role, setup_.endpoints));
  }
}

void Membership::Impl::Resend() {
  SayWhatIsDue();
  // The watch would have told of a dead scheduler, so it is the connection that is dead.
  if (state_ == State::kMember && !joined_here_) {
    link_.ConnectAnewIfSilentFor(absl::Milliseconds(welcome_.failure_timeout_ms));
  }
  const absl::Duration pause = std::min(kResendInterval, setup_.config.resend_interval);
  resend_timer_.SetAfter(pause);
}

// ---- messages of the scheduler ----

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
             std::holds_alternative<proto::LeadNow>(message) ||
             std::holds_alternative<proto::Publish>(message) ||
             std::holds_alternative<proto::Published>(message)) {
    (*listener_)->OnSchedulerMessage(std::move(message));
  } else if (std::holds_alternative<proto::StatusReply>(message) ||
             std::holds_alternative<proto::AdminReply>(message)) {
    (*listener_)->OnSchedulerText(std::move(message), text);
  }
}

void Membership::Impl::OnWelcome(const proto::Welcome& welcome) {
  joined_here_ = true;
  if (state_ == State::kMember) {
    if (welcome.cluster != welcome_.cluster || welcome.node != welcome_.node) {
      End(absl::AbortedError(
          absl::StrCat("the scheduler at ", url(), " was started anew: the old cluster is gone")));
    }
    return;
  }
  state_ = State::kMember;
  welcome_ = welcome;
  deadline_timer_.Clear();
  van::Identity identity = link_.identity();
  identity.node = welcome.node;
  identity.cluster = welcome.cluster;
  link_.SetIdentity(identity);
  watch_.Start(welcome);
  (*listener_)->OnWelcome(welcome);
}

// A connection over which nothing is sent does not notice that the other end is gone. Joining again
// shows it: the connection breaks, or Join is answered.
void Membership::Impl::OnHeartbeatConnectedAgain() { joined_here_ = false; }

void Membership::Impl::OnMap(std::shared_ptr<const proto::ClusterMap> map) {
  if (!maps_.Take(map)) {
    // A repeated map: the acknowledgement was lost.
    if (acknowledged_ >= map->version) SendMapAck();
    return;
  }
  for (const proto::NodeDown& down : maps_.Untold()) {
    if (state_ == State::kMember) Tell(down);
  }
  if (state_ != State::kMember) return;
  // A server acknowledges once its data threads have the map (Membership::AckMap).
  if (setup_.role != Role::kServer) AckMap(map->version);
  (*listener_)->OnMap(std::move(map));
}

void Membership::Impl::OnNodeDown(const proto::NodeDown& down) {
  if (maps_.Take(down)) Tell(down);
}

void Membership::Impl::Tell(const proto::NodeDown& down) {
  if (down.node == welcome_.node) {
    End(absl::AbortedError(
        absl::StrCat("the scheduler at ", url(), " has given up on this node: ", down.reason)));
  } else {
    (*listener_)->OnNodeDown(down);
  }
}

void Membership::Impl::SendMapAck() {
  if (state_ == State::kMember && acknowledged_ > 0) {
    link_.SendQuietly(proto::MapAck{.version = acknowledged_,
                                    .clock = (*listener_)->clock(),
                                    .oldest = (*listener_)->oldest_clock()});
  }
}

// ---- waiting and ending ----

// Why the scheduler has not taken this node in yet, in a line; empty: nothing is known.
std::string Membership::Impl::WhyNotIn() const {
  if (!link_.up()) return van::ReasonOf(link_.trouble());
  return not_yet_.ok() ? "it does not answer" : std::string(not_yet_.message());
}

void Membership::Impl::LogWaiting() {
  if (state_ == State::kJoining) {
    const absl::Duration waited = absl::Floor(loop_->Now() - started_, absl::Seconds(1));
    const std::string reason = WhyNotIn();
    runtime::LogInfo("waiting for the scheduler at ", url(), " (LEEWAY_SCHEDULER) for ",
                     runtime::FormatDuration(waited), reason.empty() ? "" : ": ", reason,
                     "; giving up after ", runtime::FormatDuration(setup_.config.connect_timeout),
                     " (LEEWAY_CONNECT_TIMEOUT_MS)");
  } else if (maps_.newest() != nullptr && maps_.newest()->epoch > 0) {
    return;
  } else if (state_ == State::kMember) {
    runtime::LogInfo("waiting for all ", welcome_.num_servers, " servers and ",
                     welcome_.num_workers, " workers to join; the scheduler at ", url(),
                     " says who is missing");
  }
  log_timer_.SetAfter(kWaitingLogInterval);
}

void Membership::Impl::DeadlinePassed() {
  if (state_ == State::kJoining) return JoinTimedOut();
  End(absl::DeadlineExceededError(
      absl::StrCat("the scheduler at ", url(), " has not acknowledged within ",
                   runtime::FormatDuration(leave_timeout_), " that this node leaves")));
}

void Membership::Impl::JoinTimedOut() {
  const std::string within = absl::StrCat(url(), " (LEEWAY_SCHEDULER) within ",
                                          runtime::FormatDuration(setup_.config.connect_timeout),
                                          " (LEEWAY_CONNECT_TIMEOUT_MS)");
  if (link_.up() && !not_yet_.ok()) {
    return End(absl::DeadlineExceededError(absl::StrCat("this ", Name(setup_.role),
                                                        " was not taken in by the scheduler at ",
                                                        within, ": ", not_yet_.message())));
  }
  std::string text = absl::StrCat(
      link_.up() ? "no answer from the scheduler at" : NotReachedAt(link_.trouble()), " ", within);
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
  for (runtime::Timer* timer : {&deadline_timer_, &log_timer_, &resend_timer_}) timer->Clear();
}

// Ends the membership, once. The listener is called later from the loop, so that it may destroy
// this object then.
void Membership::Impl::End(const absl::Status& why) {
  if (state_ == State::kOver) return;
  const bool leaving = state_ == State::kLeaving;
  state_ = State::kOver;
  over_ = why;
  StopTimers();
  watch_.Stop();
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
