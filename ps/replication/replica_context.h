// ReplicaContext is the state that all replicas of one data thread share: the host that sends for
// them, budgets, and the facts known about the cluster.
#ifndef LEEWAY_PS_REPLICATION_REPLICA_CONTEXT_H_
#define LEEWAY_PS_REPLICATION_REPLICA_CONTEXT_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/replication/log/replication_sender.h"
#include "ps/replication/reply_sink.h"
#include "ps/replication/successor.h"
#include "ps/shard/state/shard_context.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

// Bytes of answers to readers that wait for other replicas, those of a thread together. Readers are
// many, and must not take the room that workers' answers need.
inline constexpr std::uint64_t kReadersWaitingBytesMax = 64 << 20;
// State transfers that a thread sends at once. What is pushed meanwhile is kept until they are
// over.
inline constexpr std::uint32_t kTransfersAtOnce = 2;

// The data thread as its replicas see it.
class ReplicaHost {
 public:
  virtual ~ReplicaHost() = default;
  // Whether the connection to that data thread stands; if not, it is made, and the replica hears of
  // it (OnLinkUp).
  virtual bool Reaches(const Peer& to) = 0;
  // Sends to another data thread, by the connection made for it. False where that takes nothing
  // now; the replica is pumped when it does again.
  virtual bool SendTo(const Peer& to, const proto::AnyMessage& message, const Payload& payload) = 0;
  // Calls the replica's Acknowledge() soon, once for all that comes at once.
  virtual void AcknowledgeSoon(std::uint32_t shard) = 0;
  // Calls the replica's Confirm() soon, likewise.
  virtual void ConfirmSoon(std::uint32_t shard) = 0;
  // Calls ResendIfDue() at that time, or before.
  virtual void ResendAt(absl::Time time) = 0;
  virtual void StableHasGrown() = 0;
  // A replica is no longer what its head is, by a fault of the machine or of this program.
  virtual void OnBroken(const absl::Status& why) = 0;
};

// Outlives the replicas.
struct ReplicaContext {
  ReplicaHost* host = nullptr;
  ReplySink* replies = nullptr;
  ShardContext* shards = nullptr;
  proto::ShardOwner place;  // of this thread
  ReplicationSender::Limits limits;
  runtime::ByteBudget log;  // entries that are not on every replica yet
  runtime::ByteBudget readers{.bytes_max = kReadersWaitingBytesMax};  // answers to them
  std::uint32_t replication = 1;   // members that a chain should have
  std::uint32_t transfers = 0;     // state transfers that this thread sends now
  std::uint64_t streams = 0;       // begun
  bool provisional_given = false;  // workers keep pushes until they hear that their clock is stable
  // Neither the scheduler nor another replica has been heard for long: others may lead by now.
  bool isolated = false;
  // The lease: until then the scheduler makes no other the head of what this thread leads.
  absl::Time lease_until = absl::InfiniteFuture();
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_REPLICA_CONTEXT_H_
