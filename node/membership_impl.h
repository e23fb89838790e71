// The membership's inside: membership.cc has its life, from Start to the end, and
// membership_messages.cc what it does with what the scheduler says.
#ifndef LEEWAY_NODE_MEMBERSHIP_IMPL_H_
#define LEEWAY_NODE_MEMBERSHIP_IMPL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "node/heartbeat.h"
#include "node/map_follower.h"
#include "node/membership.h"
#include "node/scheduler_link.h"

namespace leeway::node {

class Membership::Impl final : private SchedulerLink::Owner {
 public:
  using LeaveDone = absl::AnyInvocable<void(absl::Status)>;

  Impl(Setup setup, Listener* listener);
  ~Impl() override { StopTimers(); }

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

  // ---- what the scheduler says ----
  void OnHeard(proto::AnyMessage message, absl::string_view text) override;
  void TakeAsMember(proto::AnyMessage message, absl::string_view text);
  void OnWelcome(const proto::Welcome& welcome);
  void StartHeartbeat(const van::Identity& identity);
  void OnSilence(absl::Duration heartbeats);
  void HeardAgain();
  void OnMap(std::shared_ptr<const proto::ClusterMap> map);
  void OnNodeDown(const proto::NodeDown& down);
  void Tell(const proto::NodeDown& down);
  void SendMapAck();

  // ---- waiting and ending ----
  void LogWaiting();
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
  std::unique_ptr<Heartbeat> heartbeat_;

  State state_ = State::kIdle;
  absl::Status over_;
  LeaveDone leave_done_;
  std::string leave_reason_;
  bool redialling_ = false;   // which has been logged
  bool joined_here_ = false;  // the scheduler has answered Join on this connection
  absl::Status not_yet_;      // why the scheduler does not take it in yet, as this connection says
  absl::Time started_;
  proto::Welcome welcome_;
  MapFollower maps_;
  std::uint64_t acknowledged_ = 0;
  std::optional<absl::Time> silent_since_;
  runtime::TimerId deadline_timer_{}, log_timer_{}, resend_timer_{};
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_MEMBERSHIP_IMPL_H_
