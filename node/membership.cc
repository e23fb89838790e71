#include "node/membership.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "node/heartbeat.h"
#include "node/map_follower.h"
#include "node/scheduler_url.h"
#include "proto/codec.h"
#include "proto/limits.h"
#include "runtime/log.h"

namespace leeway::node {
namespace {

using runtime::TimerId;
using van::PeerId;

constexpr absl::Duration kWaitingLogInterval = absl::Seconds(10);
// A connection that broke sooner than this after it came up is not made again at once.
constexpr absl::Duration kReconnectPause = absl::Milliseconds(500);
// Join and Leave are said again sooner than other things: until it is welcome a node does not beat,
// and a scheduler that ends waits only a little for those that leave.
constexpr absl::Duration kResendInterval = absl::Milliseconds(250);
// The van gives up connecting first, since its reason says more.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(50);

// Whether connecting again may help. What is not about the network (another protocol version,
// another cluster, a name that cannot be resolved) stays as it is.
bool MayHeal(const absl::Status& why) {
  switch (why.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
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

proto::Join MakeJoin(const Config& config, Role role, const std::vector<std::string>& endpoints) {
  proto::Join join;
  join.role = role;
  join.host = config.host;
  join.endpoints = endpoints;
  if (config.rank.has_value()) {
    // A rank beyond every limit is sent as the largest there can be, and refused like it.
    const std::uint32_t ranks = role == Role::kServer ? proto::kServersMax : proto::kWorkersMax;
    join.rank_wanted = static_cast<std::int32_t>(std::min(*config.rank, ranks - 1));
  }
  join.num_servers = config.num_servers;
  join.num_workers = config.num_workers;
  return join;
}

}  // namespace

using LeaveDone = absl::AnyInvocable<void(absl::Status)>;

class Membership::Impl final : private van::Handler {
 public:
  Impl(Setup setup, Listener* listener)
      : setup_(std::move(setup)),
        url_(SchedulerUrl(setup_.config.scheduler)),
        loop_(setup_.loop),
        listener_(std::make_shared<Listener*>(listener)) {}
  ~Impl() override { StopTimers(); }

  void Start() {
    van::Identity identity;
    identity.role = setup_.role;
    identity.incarnation = setup_.incarnation;
    van_ = setup_.factory->New(loop_, identity, van::LimitsFrom(setup_.config), this);
    state_ = State::kJoining;
    started_ = loop_->Now();
    deadline_timer_ =
        loop_->After(setup_.config.connect_timeout + kDeadlineSlack, [this] { JoinTimedOut(); });
    log_timer_ = loop_->After(kWaitingLogInterval, [this] { LogWaiting(); });
    Resend();
    Connect();
  }

  absl::Status Send(const proto::AnyMessage& message) {
    if (state_ != State::kMember) {
      return absl::FailedPreconditionError(
          absl::StrCat("not a member of the cluster of the scheduler at ", url_));
    }
    return SendRaw(message);
  }

  void AckMap(std::uint64_t version) {
    acknowledged_ = std::max(acknowledged_, version);
    SendMapAck();
  }

  void Leave(absl::Duration timeout, LeaveDone done) {
    if (state_ == State::kLeaving) {
      PostDone(std::move(done), absl::FailedPreconditionError("this node is leaving already"));
    } else if (state_ == State::kIdle || state_ == State::kOver) {
      PostDone(std::move(done), over_);
    } else {
      const bool unheard = state_ == State::kJoining && !up_;
      state_ = State::kLeaving;
      leave_done_ = std::move(done);
      if (unheard) {
        End(absl::OkStatus());  // nobody knows of this node
        return;
      }
      loop_->Cancel(deadline_timer_);
      deadline_timer_ = loop_->After(timeout, [this, timeout] {
        End(absl::DeadlineExceededError(
            absl::StrCat("the scheduler at ", url_, " has not acknowledged within ",
                         absl::FormatDuration(timeout), " that this node leaves")));
      });
      loop_->Cancel(resend_timer_);
      Resend();
    }
  }

  const std::string& scheduler_address() const { return url_; }

 private:
  enum class State { kIdle, kJoining, kMember, kLeaving, kOver };

  // ---- the connection ----

  void Connect() {
    const absl::Duration timeout =
        state_ == State::kJoining ? std::max(absl::Milliseconds(1), setup_.config.connect_timeout -
                                                                        (loop_->Now() - started_))
                                  : setup_.config.failure_timeout;
    absl::StatusOr<PeerId> peer = van_->Connect(url_, timeout);
    if (peer.ok()) {
      peer_ = *peer;
    } else if (state_ == State::kJoining) {
      End(Blame(peer.status()));
    } else {
      ReconnectLater();  // the heartbeat decides how long this may go on
    }
  }

  absl::Duration TimeToJoin() const {
    return setup_.config.connect_timeout - (loop_->Now() - started_);
  }

  void ReconnectLater() {
    connect_timer_ = loop_->After(kReconnectPause, [this] { Connect(); });
  }

  void OnPeerUp(PeerId peer, const van::Identity& identity) override {
    if (peer != peer_ || state_ == State::kOver) return;
    if (identity.role != Role::kScheduler) {
      End(absl::FailedPreconditionError(absl::StrCat("LEEWAY_SCHEDULER=", url_, " is a ",
                                                     Name(identity.role), ", not a scheduler")));
      return;
    }
    up_ = true;
    up_since_ = loop_->Now();
    joined_here_ = false;
    SayWhatIsDue();
  }

  void OnPeerDown(PeerId peer, const absl::Status& why) override {
    if (peer != peer_ || state_ == State::kOver) return;
    const bool flapping = !up_ || loop_->Now() - up_since_ < kReconnectPause;
    peer_ = 0;
    up_ = false;
    last_trouble_ = why;
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
      if (state_ != State::kJoining) {
        runtime::LogInfo("the connection to the scheduler at ", url_, " broke (", why.message(),
                         "); connecting again");
      }
      flapping ? ReconnectLater() : Connect();
    }
  }

  absl::Status SendRaw(const proto::AnyMessage& message) {
    if (peer_ == 0) {
      return absl::UnavailableError(absl::StrCat("no connection to the scheduler at ", url_));
    }
    van::Message raw;
    raw.header = proto::Encode(message);
    return van_->Send(peer_, std::move(raw));
  }

  // For what is said again until it is answered.
  void SendQuietly(const proto::AnyMessage& message) {
    if (!up_) return;
    if (absl::Status sent = SendRaw(message); !sent.ok()) {
      runtime::LogDebug(proto::NameOf(message), " not sent: ", sent.message());
    }
  }

  void SendLeave() { SendQuietly(proto::Leave{}); }
  void SendMapAck() {
    if (state_ == State::kMember && acknowledged_ > 0) SendQuietly(proto::MapAck{acknowledged_});
  }

  // What the scheduler has not answered on this connection.
  void SayWhatIsDue() {
    if (state_ == State::kLeaving) {
      SendLeave();
    } else if (!joined_here_) {
      SendQuietly(MakeJoin(setup_.config, setup_.role, setup_.endpoints));
    }
  }

  void Resend() {
    SayWhatIsDue();
    const absl::Duration pause = std::min(kResendInterval, setup_.config.resend_interval);
    resend_timer_ = loop_->After(pause, [this] { Resend(); });
  }

  // ---- what the scheduler says ----

  void OnMessage(PeerId peer, van::Message raw) override {
    if (peer != peer_ || state_ == State::kOver) return;
    absl::StatusOr<proto::AnyMessage> message =
        proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
    if (!message.ok()) {
      runtime::LogWarning("malformed message from the scheduler at ", url_, ": ",
                          message.status().message());
      van_->Disconnect(peer, message.status());
      return;
    }
    heard_ = loop_->Now();
    Take(*std::move(message));
  }

  void Take(proto::AnyMessage message) {
    if (const auto* shutdown = std::get_if<proto::Shutdown>(&message)) {
      End(state_ == State::kLeaving ? absl::OkStatus() : shutdown->why);
    } else if (state_ == State::kLeaving) {
      if (std::holds_alternative<proto::LeaveAck>(message)) End(absl::OkStatus());
    } else if (const auto* welcome = std::get_if<proto::Welcome>(&message)) {
      OnWelcome(*welcome);
    } else if (const auto* refused = std::get_if<proto::Refused>(&message)) {
      End(Refusal(refused->why));
    } else if (state_ == State::kMember) {
      TakeAsMember(std::move(message));
    }
  }

  void TakeAsMember(proto::AnyMessage message) {
    if (auto* map = std::get_if<proto::ClusterMap>(&message)) {
      OnMap(std::make_shared<const proto::ClusterMap>(std::move(*map)));
    } else if (const auto* down = std::get_if<proto::NodeDown>(&message)) {
      OnNodeDown(*down);
    } else if (std::holds_alternative<proto::TableReply>(message) ||
               std::holds_alternative<proto::InstallTable>(message) ||
               std::holds_alternative<proto::BarrierRelease>(message) ||
               std::holds_alternative<proto::StatusRequest>(message) ||
               std::holds_alternative<proto::StatusReply>(message)) {
      (*listener_)->OnSchedulerMessage(std::move(message));
    }
  }

  void OnWelcome(const proto::Welcome& welcome) {
    joined_here_ = true;
    if (state_ == State::kMember) {
      if (welcome.cluster != welcome_.cluster || welcome.node != welcome_.node) {
        End(absl::AbortedError(
            absl::StrCat("the scheduler at ", url_, " was started anew: the old cluster is gone")));
      }
      return;
    }
    state_ = State::kMember;
    welcome_ = welcome;
    loop_->Cancel(deadline_timer_);
    van::Identity identity = van_->identity();
    identity.node = welcome.node;
    identity.cluster = welcome.cluster;
    van_->SetIdentity(identity);
    StartHeartbeat(identity);
    (*listener_)->OnWelcome(welcome);
  }

  void StartHeartbeat(const van::Identity& identity) {
    Heartbeat::Setup setup;
    setup.scheduler = url_;
    setup.identity = identity;
    setup.limits = van::LimitsFrom(setup_.config);
    // The scheduler's own settings, lest a node with others be taken for dead.
    setup.interval = absl::Milliseconds(std::max(1u, welcome_.heartbeat_interval_ms));
    setup.failure_timeout = absl::Milliseconds(std::max(1u, welcome_.failure_timeout_ms));
    setup.host = setup_.host;
    setup.owner = loop_;
    setup.factory = setup_.factory;
    heartbeat_ = std::make_unique<Heartbeat>(std::move(setup),
                                             [this](const absl::Status& why) { Lost(why); });
  }

  // Heartbeats without an answer are not silence if the scheduler was heard on this connection.
  void Lost(const absl::Status& why) {
    const absl::Duration patience = absl::Milliseconds(welcome_.failure_timeout_ms);
    if (absl::IsUnavailable(why) && loop_->Now() - heard_ <= patience) return;
    End(why);
  }

  void OnMap(std::shared_ptr<const proto::ClusterMap> map) {
    if (!maps_.Take(map)) {
      // Again: the scheduler has not heard that it was taken.
      if (acknowledged_ >= map->version) SendMapAck();
      return;
    }
    for (const proto::NodeDown& down : maps_.Untold()) {
      if (state_ == State::kMember) Tell(down);
    }
    if (state_ != State::kMember) return;
    // A server acknowledges when its data threads have the map; for a worker, having it is all.
    if (setup_.role != Role::kServer) AckMap(map->version);
    (*listener_)->OnMap(std::move(map));
  }

  void OnNodeDown(const proto::NodeDown& down) {
    if (maps_.Take(down)) Tell(down);
  }

  void Tell(const proto::NodeDown& down) {
    if (down.node == welcome_.node) {
      End(absl::AbortedError(
          absl::StrCat("the scheduler at ", url_, " has given up on this node: ", down.reason)));
    } else {
      (*listener_)->OnNodeDown(down);
    }
  }

  // ---- waiting and ending ----

  void LogWaiting() {
    if (state_ == State::kJoining) {
      runtime::LogInfo("waiting for the scheduler at ", url_, " (LEEWAY_SCHEDULER) for ",
                       absl::FormatDuration(loop_->Now() - started_), "; giving up after ",
                       absl::FormatDuration(setup_.config.connect_timeout),
                       " (LEEWAY_CONNECT_TIMEOUT_MS)");
    } else if (state_ == State::kMember && maps_.newest() != nullptr) {
      if (maps_.newest()->epoch > 0) return;
      runtime::LogInfo(
          "waiting for the cluster: ",
          DescribeMissing(*maps_.newest(), welcome_.num_servers, welcome_.num_workers));
    }
    log_timer_ = loop_->After(kWaitingLogInterval, [this] { LogWaiting(); });
  }

  void JoinTimedOut() {
    std::string text = absl::StrCat(up_ ? "no answer from the scheduler at " : "no scheduler at ",
                                    url_, " (LEEWAY_SCHEDULER) within ",
                                    absl::FormatDuration(setup_.config.connect_timeout),
                                    " (LEEWAY_CONNECT_TIMEOUT_MS)");
    if (!last_trouble_.ok()) absl::StrAppend(&text, ": ", last_trouble_.message());
    End(absl::DeadlineExceededError(text));
  }

  absl::Status Blame(const absl::Status& why) const {
    return absl::Status(why.code(), absl::StrCat("cannot reach the scheduler at ", url_,
                                                 " (LEEWAY_SCHEDULER): ", why.message()));
  }

  absl::Status Refusal(const absl::Status& why) const {
    const absl::StatusCode code = why.ok() ? absl::StatusCode::kFailedPrecondition : why.code();
    return absl::Status(code, absl::StrCat("the scheduler at ", url_, " refuses this ",
                                           Name(setup_.role), ": ", why.message()));
  }

  void StopTimers() {
    for (TimerId* timer : {&deadline_timer_, &log_timer_, &resend_timer_, &connect_timer_}) {
      loop_->Cancel(*timer);
      *timer = TimerId::kNone;
    }
  }

  // Ends it once, for whatever reason. The owner is told from the loop, so that it may destroy
  // this object then.
  void End(const absl::Status& why) {
    if (state_ == State::kOver) return;
    const bool leaving = state_ == State::kLeaving;
    state_ = State::kOver;
    over_ = why;
    StopTimers();
    heartbeat_.reset();
    if (peer_ != 0) van_->Disconnect(peer_, absl::OkStatus());
    if (leaving) {
      PostDone(std::move(leave_done_), why);
    } else {
      loop_->Post([listener = std::weak_ptr<Listener*>(listener_), why] {
        if (auto alive = listener.lock()) (*alive)->OnOver(why);
      });
    }
  }

  void PostDone(LeaveDone done, absl::Status status) {
    loop_->Post([done = std::move(done), status = std::move(status)]() mutable {
      done(std::move(status));
    });
  }

  const Setup setup_;
  const std::string url_;
  runtime::Loop* const loop_;
  // Shared with calls on their way through the loop, which drop themselves once it is gone.
  const std::shared_ptr<Listener*> listener_;
  std::unique_ptr<van::Van> van_;
  std::unique_ptr<Heartbeat> heartbeat_;

  State state_ = State::kIdle;
  absl::Status over_;
  LeaveDone leave_done_;
  PeerId peer_ = 0;
  bool up_ = false;
  bool joined_here_ = false;  // the scheduler has answered Join on this connection
  absl::Time started_, up_since_, heard_;
  absl::Status last_trouble_;
  proto::Welcome welcome_;
  MapFollower maps_;
  std::uint64_t acknowledged_ = 0;
  TimerId deadline_timer_ = TimerId::kNone, log_timer_ = TimerId::kNone,
          resend_timer_ = TimerId::kNone, connect_timer_ = TimerId::kNone;
};

Membership::Membership(Setup setup, Listener* listener)
    : impl_(std::make_unique<Impl>(std::move(setup), listener)) {}
Membership::~Membership() = default;
void Membership::Start() { impl_->Start(); }
absl::Status Membership::Send(const proto::AnyMessage& message) { return impl_->Send(message); }
void Membership::AckMap(std::uint64_t version) { impl_->AckMap(version); }
void Membership::Leave(absl::Duration timeout, absl::AnyInvocable<void(absl::Status)> done) {
  impl_->Leave(timeout, std::move(done));
}
const std::string& Membership::scheduler_address() const { return impl_->scheduler_address(); }

}  // namespace leeway::node
