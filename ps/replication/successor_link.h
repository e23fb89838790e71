// The successor of one replica: which replica the log is passed on to, whether it needs a state
// transfer first, and whether it takes what it is sent.
//
// Owned by its Replica. The successor is the next member of the chain, a replica that is joining,
// or the new head while this replica hands over to it.
#ifndef LEEWAY_PS_REPLICATION_SUCCESSOR_LINK_H_
#define LEEWAY_PS_REPLICATION_SUCCESSOR_LINK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/chain.h"
#include "ps/replication/replica_context.h"
#include "ps/replication/successor.h"

namespace leeway::ps {

class SuccessorLink {
 public:
  // `context` outlives this.
  SuccessorLink(std::uint32_t shard, ReplicaContext* context) : shard_(shard), context_(context) {}
  ~SuccessorLink() {
    if (transferring_) --context_->transfers;
  }
  SuccessorLink(const SuccessorLink&) = delete;
  SuccessorLink& operator=(const SuccessorLink&) = delete;

  bool exists() const { return successor_ != nullptr; }
  const Peer& peer() const { return successor_->peer(); }
  bool Is(const Peer& peer) const { return exists() && successor_->peer() == peer; }
  bool IsServer(const Peer& sender) const {
    return exists() && successor_->peer().server() == sender.server();
  }
  Successor* operator->() { return successor_.get(); }
  const Successor* operator->() const { return successor_.get(); }

  // A new stream to that replica, of that epoch, instead of any other.
  void Begin(const Peer& peer, bool joining, std::uint64_t epoch, absl::Time now);
  void End();
  // The epoch in which the stream began.
  std::uint64_t since() const { return since_; }

  // Entries of the log go to it: not while its state transfer waits for its turn, nor to a new
  // head.
  bool TakesLog() const;
  bool joining() const { return joining_; }
  void set_joining(bool joining) { joining_ = joining; }

  // ---- state transfer ----

  // A transfer is due, and the thread sends fewer than kTransfersAtOnce.
  bool MayBeginTransfer() const;
  void BeginTransfer(LogEntry begin, std::vector<LogEntry> pieces);
  // All of the state, and what came meanwhile, has been sent.
  bool TransferIsSent() const { return transferring_ && successor_->CaughtUp(); }
  // Sends the end of the transfer: the state was that of entry `index`.
  void EndTransfer(std::uint64_t index);
  bool transfer_waits() const { return transfer_waits_; }

  // ---- handing over to a new head ----

  bool handing_over() const { return handing_over_; }
  void BeginHandover(std::vector<LogEntry> rest);
  void EndHandover() { handing_over_ = false; }
  // The new head has all of it.
  bool HandoverIsOver() const;

  // ---- the link ----

  void NoteHeard(absl::Time now) { heard_ = now; }
  absl::Time heard() const { return heard_; }
  // The successor has taken something.
  void NoteTaken(absl::Time now) { link_good_ = now; }
  // The report for the scheduler if the successor has taken nothing for `patience`. Called from
  // time to time.
  std::optional<proto::LinkReport> Look(std::uint64_t epoch, absl::Time now,
                                        absl::Duration patience);

 private:
  bool NothingToSend() const;

  const std::uint32_t shard_;
  ReplicaContext* const context_;
  std::unique_ptr<Successor> successor_;
  std::uint64_t since_ = 0;
  bool joining_ = false;         // no member of the chain yet
  bool transfer_waits_ = false;  // its state transfer has not begun yet
  bool transferring_ = false;
  bool handing_over_ = false;  // it is the new head
  absl::Time heard_;
  absl::Time link_good_;  // it took something, or there was nothing for it
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_SUCCESSOR_LINK_H_
