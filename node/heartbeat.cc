#include "node/heartbeat.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "proto/messages/messages.h"
#include "runtime/base/format_duration.h"
#include "runtime/log/log.h"
#include "runtime/loop/timer.h"

namespace leeway::node {

using van::PeerId;

namespace {

// Less than the time after which other nodes report a stalled connection (van::Limits::stall_time),
// since a tick may have been due just before the process stopped.
constexpr absl::Duration kStandStillLogged = absl::Seconds(2);
// Heartbeats whose answers are waited for. When an older one left is not remembered.
constexpr std::size_t kBeatsUnansweredMax = 64;

}  // namespace

class Heartbeat::Beater final : private van::Handler {
 public:
  Beater(Setup setup, runtime::Loop* loop, std::weak_ptr<Reports> reports)
      : setup_(std::move(setup)), loop_(loop), reports_(std::move(reports)) {}

  void Start() {
    van_ = setup_.factory->New(loop_, setup_.identity, setup_.limits, this);
    started_ = last_answer_ = last_tick_ = loop_->Now();
    Connect();
    timer_.SetAfter(setup_.interval);
  }

  void Redirect(const std::string& scheduler) {
    if (scheduler == setup_.scheduler) return;
    setup_.scheduler = scheduler;
    if (peer_ != 0) van_->Disconnect(std::exchange(peer_, 0), absl::OkStatus());
    up_ = false;
    Connect();
  }

 private:
  void Connect() {
    absl::StatusOr<PeerId> peer = van_->Connect(setup_.scheduler, setup_.failure_timeout);
    peer_ = peer.ok() ? *peer : 0;  // otherwise the next tick tries again
    connecting_since_ = loop_->Now();
  }

  void Tick() {
    const absl::Time now = loop_->Now();
    // A process that was stopped or starved has not listened either: that time does not count.
    const absl::Duration late = now - last_tick_ - setup_.interval;
    if (late > setup_.interval) last_answer_ += late;
    if (late > kStandStillLogged) {
      runtime::LogWarning("this process has stood still for ", runtime::FormatDuration(late),
                          ": it was stopped, or starved of the processor, and has taken nothing of "
                          "what was sent to it");
    }
    last_tick_ = now;
    silent_ = now - last_answer_ > setup_.failure_timeout;
    if (silent_) {
      Report([silent = now - last_answer_](Reports& reports) { reports.silent(silent); });
    }
    // A connection that is up and brings nothing may lead to an address that the scheduler has
    // left.
    if (up_ && silent_ && now - connecting_since_ > setup_.failure_timeout) {
      up_ = false;
      van_->Disconnect(std::exchange(peer_, 0), absl::OkStatus());
    }
    if (!up_ && now - connecting_since_ > HandshakeMax(setup_.failure_timeout)) {
      if (peer_ != 0) van_->Disconnect(peer_, absl::OkStatus());
      Connect();
    } else if (peer_ == 0) {
      Connect();
    }
    // Twice as often while the last heartbeat is unanswered: lost messages alone must not look like
    // death.
    const bool answered = answered_ == number_;
    if (up_) SendBeat();
    timer_.SetAfter(answered ? setup_.interval : setup_.interval / 2);
  }

  void SendBeat() {
    proto::Heartbeat beat;
    beat.node = setup_.identity.node;
    beat.incarnation = setup_.identity.incarnation;
    beat.number = ++number_;
    if (sent_.size() == kBeatsUnansweredMax) sent_.pop_front();
    sent_.emplace_back(number_, loop_->Now());
    beat.uptime_ms = static_cast<std::uint64_t>(absl::ToInt64Milliseconds(loop_->Now() - started_));
    beat.resident_bytes = setup_.host->ResidentBytes();
    van::Message message;
    message.header = proto::Encode(beat);
    if (absl::Status sent = van_->Send(peer_, std::move(message)); !sent.ok()) {
      runtime::LogDebug("heartbeat not sent: ", sent.message());
    }
  }

  void NoteAnswered(std::uint64_t number) {
    std::optional<absl::Time> sent;
    for (; !sent_.empty() && sent_.front().first <= number; sent_.pop_front()) {
      if (sent_.front().first == number) sent = sent_.front().second;
    }
    if (sent.has_value()) Report([at = *sent](Reports& reports) { reports.answered(at); });
  }

  template <class F>
  void Report(F f) {
    setup_.owner->Post([reports = reports_, f = std::move(f)] {
      if (std::shared_ptr<Reports> alive = reports.lock()) f(*alive);
    });
  }

  void OnPeerUp(PeerId peer, const van::Identity& identity) override {
    if (peer != peer_) return;
    up_ = true;
    SendBeat();
    if (std::exchange(has_been_up_, true) || identity.incarnation != setup_.scheduler_incarnation) {
      Report([](Reports& reports) { reports.connected_again(); });
    }
  }

  void OnPeerDown(PeerId peer, const absl::Status& why) override {
    if (peer != peer_) return;
    runtime::LogDebug("heartbeat connection lost: ", why.message());
    peer_ = 0;
    if (std::exchange(up_, false)) Report([](Reports& reports) { reports.broken(); });
  }

  void OnMessage(PeerId peer, van::Message message) override {
    if (peer != peer_) return;
    absl::StatusOr<proto::AnyMessage> decoded =
        proto::Decode(message.header, {message.payload.data(), message.payload.size()});
    if (!decoded.ok()) {
      van_->Disconnect(peer, decoded.status());
      return;
    }
    if (const auto* ack = std::get_if<proto::HeartbeatAck>(&*decoded)) {
      if (ack->number > number_) return;
      answered_ = std::max(answered_, ack->number);
      last_answer_ = loop_->Now();
      NoteAnswered(ack->number);
      if (std::exchange(silent_, false)) Report([](Reports& reports) { reports.heard_again(); });
    } else if (const auto* down = std::get_if<proto::NodeDown>(&*decoded)) {
      if (down->incarnation != setup_.identity.incarnation) return;
      Report([why = absl::AbortedError(absl::StrCat("the scheduler at ", setup_.scheduler,
                                                    " has given up on this node: ", down->reason))](
                 Reports& reports) { reports.given_up(why); });
    }
  }

  Setup setup_;
  runtime::Loop* const loop_;
  const std::weak_ptr<Reports> reports_;
  std::unique_ptr<van::Van> van_;
  PeerId peer_ = 0;
  bool up_ = false, has_been_up_ = false;
  bool silent_ = false;
  std::uint64_t number_ = 0, answered_ = 0;
  std::deque<std::pair<std::uint64_t, absl::Time>> sent_;  // beats that are not answered: when
  absl::Time started_, last_answer_, last_tick_, connecting_since_;
  runtime::Timer timer_{loop_, [this] { Tick(); }};
};

Heartbeat::Heartbeat(Setup setup, Reports reports)
    : reports_(std::make_shared<Reports>(std::move(reports))),
      runner_(setup.host->Spawn("heartbeat")) {
  beater_ = std::make_unique<Beater>(std::move(setup), runner_->loop(), reports_);
  runner_->loop()->Post([beater = beater_.get()] { beater->Start(); });
}

void Heartbeat::Redirect(const std::string& scheduler) {
  runner_->loop()->Post([beater = beater_.get(), scheduler] { beater->Redirect(scheduler); });
}

Heartbeat::~Heartbeat() {
  reports_.reset();
  // The van must go on its own loop. A real loop has done so when Join returns; a simulated one,
  // whose turns are all on this thread, is never waited for, and the van goes here.
  runner_->loop()->Post([this] {
    beater_.reset();
    runner_->Stop();
  });
  runner_->Join();
  beater_.reset();
}

}  // namespace leeway::node
