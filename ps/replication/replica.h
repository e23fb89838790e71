// One replica of a shard: connects the shard to its chain. As the head it serves workers; as
// another member it follows the log; while it is joining it takes the state first.
// docs/fault-tolerance.md has the protocol.
//
//        workers ──▶ head ──▶ … ──▶ tail            (──▶ one that is joining)
//                     ▲ commits ◀──── acknowledges
//
// Lives on the data thread's loop; the thread is its ReplicaHost and outlives it. It decides what
// follows from what, and has the parts in classes of their own: the place in the chain
// (ChainPlace), the two neighbours (PredecessorLink, SuccessorLink), the log that comes
// (ReceivedLog), what is committed (CommitPoint) and the answers that wait for that
// (WaitingAnswers).
#ifndef LEEWAY_PS_REPLICATION_REPLICA_H_
#define LEEWAY_PS_REPLICATION_REPLICA_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "proto/messages/chain.h"
#include "ps/replication/chain_place.h"
#include "ps/replication/commit_point.h"
#include "ps/replication/log/shard_effects.h"
#include "ps/replication/predecessor_link.h"
#include "ps/replication/received_log.h"
#include "ps/replication/replica_context.h"
#include "ps/replication/successor_link.h"
#include "ps/replication/waiting_answers.h"
#include "ps/shard/shard.h"

namespace leeway::ps {

class Replica final : private ShardEffects {
 public:
  Replica(std::uint32_t shard, ReplicaContext* context);

  // The shard's place in a newer map, whose workers the shard has got before.
  void TakeMap(const proto::ClusterMap& map);

  Shard& shard() { return shard_; }
  const Shard& shard() const { return shard_; }

  // The head, and it serves.
  bool leads() const { return leads_; }
  bool is_head() const { return place_.is_head(); }
  bool is_member() const { return place_.is_member(); }
  bool awaits_handover() const { return predecessor_.awaits_handover(); }
  // It has the state, and every later entry waits for this replica; the map does not show it as a
  // member yet.
  bool ready() const { return place_.is_joining() && received_.has_state(); }
  // The replica can be deleted.
  bool gone() const {
    return place_.role() == ChainPlace::Role::kNone && !successor_.handing_over();
  }

  // Whether the head can take that request now: UNAVAILABLE says why not.
  absl::Status CanTake(const proto::Request& request) const;
  // CommitPoint::stable.
  std::uint64_t stable() const { return commit_.stable(); }
  // After something that may have changed `stable`.
  void UpdateStable();
  // Calls `then` once everything logged so far is on every replica.
  void WhenCommitted(std::function<void()> then) { waiting_.WhenCommitted(std::move(then)); }

  // ---- messages of other servers ----
  void OnEntry(const Peer& sender, van::PeerId connection, LogEntry entry);
  void OnAck(const Peer& sender, van::PeerId connection, const proto::ReplicateAck& ack);
  // Tells the predecessor what has been taken and what is committed.
  void Acknowledge();
  // Logs an entry that proves that this replica leads still, if answers wait for that.
  void Confirm();
  // The old head cannot be reached, but has told the scheduler that it has stepped down: its
  // handover is awaited no longer, as if it had died.
  void OnLeadNow(const proto::LeadNow& lead);
  // SuccessorLink::Look.
  std::optional<proto::LinkReport> LookAtLink(absl::Time now, absl::Duration patience) {
    return successor_.Look(place_.epoch(), now, patience);
  }
  // The connection to that place stands (again): what was sent over another may be lost.
  void OnLinkUp(const proto::ShardOwner& place);
  void OnPeerDown(van::PeerId connection);
  // Sends what may be sent.
  void Pump();
  void ResendIfDue(absl::Time now);
  absl::Time due() const;
  // Asks again for a handover, begins a state transfer that had to wait for others.
  void Nudge();

  std::uint64_t committed() const { return commit_.committed(shard_.index()); }

 private:
  // ShardEffects.
  bool has_follower() const override { return successor_.TakesLog(); }
  void Log(LogEntry entry) override;
  bool provisional() const override;
  void Offended(van::PeerId peer, const absl::Status& why) override;
  void Broken(const absl::Status& why) override;

  void OnCommitted();

  // Changes of the chain.
  void RefuseMembership();
  void StepDown();
  void TakeLead();
  void EndHandover();
  void CheckPredecessor();
  void CheckSuccessor();
  void BeginSuccessor(const Peer& peer, bool joining);
  void SetGating(bool gating);
  void BeginTransferIfDue();
  void EndTransferIfDue();

  absl::Status TakeReceived(LogEntry entry);
  absl::Status TakeEntry(LogEntry entry);
  void TakeHandoverRequest(const Peer& sender, van::PeerId connection);

  absl::Time Now() const { return context_->shards->loop->Now(); }

  ReplicaContext* const context_;
  Shard shard_;
  ChainPlace place_;
  bool leads_ = false;
  bool was_replica_ = false;  // before it became the head
  PredecessorLink predecessor_;
  ReceivedLog received_;
  SuccessorLink successor_;
  CommitPoint commit_;
  WaitingAnswers waiting_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_REPLICA_H_
