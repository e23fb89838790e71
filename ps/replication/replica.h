// One replica of a shard: its place in the chain, what it takes from the one before it, what it
// sends to the one behind it, and what has to wait until all have it. docs/fault-tolerance.md has
// the protocol.
//
//        workers ──▶ head ──▶ … ──▶ tail            (──▶ one that is being filled)
//                     ▲ commits ◀──── acknowledges
#ifndef LEEWAY_PS_REPLICATION_REPLICA_H_
#define LEEWAY_PS_REPLICATION_REPLICA_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/chain.h"
#include "ps/replication/log/replication_receiver.h"
#include "ps/replication/log/shard_effects.h"
#include "ps/replication/log/uncommitted.h"
#include "ps/replication/successor.h"
#include "ps/shard/shard.h"

namespace leeway::ps {

// Answers of one shard that wait for its other replicas; more are dropped, to be asked for again.
// What the server itself waits for, which nobody asks for again, finds room for as many more.
inline constexpr std::size_t kAnswersWaitingMax = 1 << 16;
// Answers to readers that wait for other replicas, those of a thread together: bytes. Readers are
// many, and not to take the room that workers' answers need.
inline constexpr std::uint64_t kReadersWaitingBytesMax = 256 << 20;
// Replicas that a thread fills at once. What is pushed meanwhile is kept until the fill is over.
inline constexpr std::uint32_t kFillsAtOnce = 2;

// What a replica needs of its data thread.
class ReplicaHost {
 public:
  virtual ~ReplicaHost() = default;
  // Whether the connection to that data thread stands; if not, it is made, and the replica hears of
  // it (OnLinkUp).
  virtual bool Reaches(const Peer& to) = 0;
  // To another data thread, by the connection made for it. False where that takes nothing now; the
  // replica is pumped when it does again.
  virtual bool SendTo(const Peer& to, const proto::AnyMessage& message, const Payload& payload) = 0;
  // Back to where something came from.
  virtual void SendBack(van::PeerId connection, const proto::AnyMessage& message) = 0;
  virtual void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) = 0;
  // Ends the connection for what it has sent, once the message is dealt with.
  virtual void DropSoon(van::PeerId peer, const absl::Status& why) = 0;
  // Calls the replica's Acknowledge() soon, once for all that comes at once.
  virtual void AcknowledgeSoon(std::uint32_t shard) = 0;
  // Calls the replica's Confirm() soon, likewise.
  virtual void ConfirmSoon(std::uint32_t shard) = 0;
  // Calls ResendIfDue() then, or before.
  virtual void ResendAt(absl::Time time) = 0;
  virtual void StableHasGrown() = 0;
  // A replica is no longer what its head is, by a fault of the machine or of this program.
  virtual void OnBroken(const absl::Status& why) = 0;
};

// Shared by the replicas of a thread, which it outlives.
struct ReplicaContext {
  ReplicaHost* host = nullptr;
  ShardContext* shards = nullptr;
  proto::ShardOwner place;
  ReplicationSender::Limits limits;
  runtime::ByteBudget log;  // entries that are not on every replica yet
  runtime::ByteBudget readers{.bytes_max = kReadersWaitingBytesMax};  // answers to them
  std::uint32_t replication = 1;   // members that a chain should have
  std::uint32_t fills = 0;         // under way from this thread
  std::uint64_t streams = 0;       // begun
  bool provisional_given = false;  // workers keep pushes until they hear that their clock is stable
  // Neither the scheduler nor another replica has been heard for long: others may lead by now.
  bool isolated = false;
  // Until then the scheduler has made nobody else the head of what this thread leads.
  absl::Time lease_until = absl::InfiniteFuture();
};

class Replica final : private ShardEffects {
 public:
  Replica(std::uint32_t shard, ReplicaContext* context);
  ~Replica() override;

  // The shard's place in a newer map. Workers have been told to the shard before.
  void TakeMap(const proto::ClusterMap& map);

  Shard& shard() { return shard_; }
  const Shard& shard() const { return shard_; }

  // The head, and it serves.
  bool leads() const { return leads_; }
  bool is_head() const { return role_ == Role::kHead; }
  bool is_member() const { return role_ == Role::kHead || role_ == Role::kFollower; }
  bool awaits_handover() const { return awaited_.has_value(); }
  // Filled, and every later entry waits for this replica; the map does not show it as a member yet.
  bool ready() const { return role_ == Role::kFilling && filled_; }
  // Nothing holds it here any more.
  bool gone() const { return role_ == Role::kNone && !handing_over_; }

  // Whether the head can take that request now: UNAVAILABLE says why not.
  absl::Status CanTake(const proto::Request& request) const;
  // All clocks below it have closed, and the other replicas know.
  std::uint64_t stable() const { return stable_; }
  // After something that may have changed `stable`.
  void UpdateStable();
  // Calls `then` once everything logged so far is on every replica.
  void WhenCommitted(std::function<void()> then);

  // ---- what other servers say ----
  void OnEntry(const Peer& sender, van::PeerId connection, LogEntry entry);
  void OnAck(const Peer& sender, van::PeerId connection, const proto::ReplicateAck& ack);
  void Acknowledge();
  // Logs what proves that this replica leads still, if answers wait for it.
  void Confirm();
  void OnLeadNow(const proto::LeadNow& lead);
  // From time to time: what to tell the scheduler if the one behind has taken nothing for so long.
  std::optional<proto::LinkReport> LookAtLink(absl::Time now, absl::Duration patience);
  // The connection to that place stands (again): what was sent over another may be lost.
  void OnLinkUp(const proto::ShardOwner& place);
  void OnPeerDown(van::PeerId connection);
  void Pump();
  void ResendIfDue(absl::Time now);
  absl::Time due() const;
  // Asks again for a handover, begins a fill that had to wait for others.
  void Nudge();

  std::uint64_t committed() const { return gating_ ? committed_ : shard_.index(); }

 private:
  enum class Role { kNone, kHead, kFollower, kFilling };
  struct Predecessor {
    Peer peer;
    std::uint64_t since = 0;  // the epoch in which it became that
    van::PeerId connection = 0;
  };
  // An entry that came from one who was not predecessor then.
  struct Stray {
    std::pair<std::uint32_t, std::uint64_t> sender;
    van::PeerId connection = 0;
    std::uint64_t stream = 0;
  };
  struct Waiting {
    std::uint64_t index = 0;
    absl::Time since;
    absl::Time deadline = absl::InfiniteFuture();
    van::PeerId peer = 0;
    proto::Reply reply;
    Payload payload;
    std::uint64_t reader_bytes = 0;  // of an answer to a reader: what it is charged
    std::function<void()> then;      // instead of an answer
  };

  // ShardEffects.
  bool has_follower() const override;
  void Log(LogEntry entry) override;
  bool provisional() const override;
  void Answer(van::PeerId peer, proto::Reply reply, Payload payload, absl::Time deadline) override;
  absl::Status AnswerReader(van::PeerId peer, proto::Reply reply, Payload payload,
                            absl::Time deadline) override;
  void AnswerNow(van::PeerId peer, proto::Reply reply) override;
  void Offended(van::PeerId peer, const absl::Status& why) override;
  void Broken(const absl::Status& why) override;
  bool NeedsProof() const;
  void Wait(Waiting waiting, bool proof = false);
  void Release(const Waiting& waiting) { context_->readers.bytes -= waiting.reader_bytes; }
  void ForgetWaiting();
  void RefuseOverdue(absl::Time now);
  absl::Status Overdue(const Waiting& waiting, absl::Time now) const;

  // Changes of the chain (replica_chain.cc).
  Role RoleInChain() const;
  void RefuseMembership();
  void StepDown();
  void TakeLead();
  void CheckPredecessor();
  void CheckSuccessor();
  void BeginSuccessor(const Peer& peer, bool to_filling);
  void EndSuccessor();
  void SetGating(bool gating);
  void BeginFillIfDue();
  void EndFillIfDue();
  bool SendsNothing() const;

  void EndHandover();

  absl::Status TakeStreamed(LogEntry entry);
  absl::Status TakeEntry(LogEntry entry);
  void OnCommitted();

  ReplicaContext* const context_;
  Shard shard_;
  std::uint64_t epoch_ = 0;
  std::vector<Peer> members_;   // of the chain, head first
  std::vector<Peer> fillings_;  // those that are being filled
  Role role_ = Role::kNone;
  bool leads_ = false;
  bool was_replica_ = false;  // before it became the head

  // Towards the head.
  std::optional<Predecessor> predecessor_;
  ReplicationReceiver receiver_;
  std::vector<LogEntry> updates_;  // of the Close that is to come
  bool fill_begun_ = false;
  bool filled_ = false;
  bool broken_ = false;  // could not apply an entry: of no use until it is filled anew
  std::optional<Stray> stray_;
  std::optional<Peer> awaited_;      // the old head that hands over
  std::uint64_t awaited_since_ = 0;  // the epoch
  std::vector<LogEntry> handed_;     // of its handover

  // Towards the tail.
  std::unique_ptr<Successor> successor_;
  std::uint64_t successor_since_ = 0;  // the epoch in which its stream began
  bool to_filling_ = false;            // it is one that is being filled
  bool fill_waits_ = false;            // its fill has not begun yet
  bool filling_ = false;               // its fill is under way
  bool gating_ = false;                // nothing is committed that it does not have
  std::uint64_t committed_ = 0;        // while gating
  Uncommitted uncommitted_;
  bool handing_over_ = false;  // successor is the new head

  std::deque<Waiting> waiting_;
  absl::Time first_deadline_ = absl::InfiniteFuture();  // of those, or earlier
  absl::Time follower_heard_;
  absl::Time link_good_;          // the one behind took something, or there was nothing for it
  std::uint64_t confirm_at_ = 0;  // index of a coming entry that answers wait for
  std::uint64_t confirming_ = 0;  // of the last Confirm
  std::uint64_t stable_ = 0;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> closings_;  // index, closed
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_REPLICA_H_
