// The predecessor of one replica: which replica the log is taken from, over which connection, and
// which of its messages are to be believed. It is the replica before this one in the chain or,
// while a new head awaits the handover, the old head.
//
// Owned by its Replica. What a believed entry does is the business of ReceivedLog.
#ifndef LEEWAY_PS_REPLICATION_PREDECESSOR_LINK_H_
#define LEEWAY_PS_REPLICATION_PREDECESSOR_LINK_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "proto/messages/messages.h"
#include "ps/replication/log/replication_receiver.h"
#include "ps/replication/successor.h"
#include "van/van.h"

namespace leeway::ps {

class PredecessorLink {
 public:
  // The decision about an entry that has arrived.
  enum class Verdict {
    kIgnore,
    kTake,
    kAcknowledge,          // it was taken before, or one before it is missing
    kUnknownStream,        // the beginning of the stream was not seen
    kRepeatedHandoverEnd,  // acknowledge it: its sender repeats it until it is heard
    kNothingHandedOver,    // the old head says that it has nothing to hand over
  };
  // `leads`: this replica is the head and serves.
  Verdict Judge(const Peer& sender, van::PeerId connection, const proto::Replicate& header,
                bool leads);
  // The entry judged kTake has been taken.
  void NoteTaken(std::uint64_t stream, std::uint64_t number) { receiver_.Take(stream, number); }

  // The stream that entries are taken from; 0: none yet. Everything up to received() was taken.
  std::uint64_t stream() const { return receiver_.stream(); }
  std::uint64_t received() const { return receiver_.received(); }

  // Null: there is none.
  const Peer* peer() const { return predecessor_.has_value() ? &predecessor_->peer : nullptr; }
  // The epoch in which it became that.
  std::uint64_t since() const { return predecessor_->since; }
  // The connection that its entries last came over; 0: it is gone.
  van::PeerId connection() const { return predecessor_->connection; }

  // The replica to take the log from in that epoch. True if that is another one than before; then
  // what was received is forgotten. `greeting`: it has sent entries already, over that connection,
  // and has to hear from which epoch on they are taken.
  struct Greeting {
    van::PeerId connection = 0;
    std::uint64_t stream = 0;
  };
  bool Set(const std::optional<Peer>& wanted, std::uint64_t epoch,
           std::optional<Greeting>* greeting);
  void OnPeerDown(van::PeerId connection);

  // ---- the handover of the old head, which a new head awaits ----

  bool awaits_handover() const { return awaited_.has_value(); }
  const std::optional<Peer>& awaited() const { return awaited_; }
  void AwaitHandover(const std::optional<Peer>& old_head, std::uint64_t epoch) {
    awaited_ = old_head;
    awaited_since_ = epoch;
  }
  void StopAwaiting() { awaited_.reset(); }
  // Whether that message is about the handover that is awaited.
  bool IsAbout(const proto::LeadNow& lead) const;

 private:
  struct Predecessor {
    Peer peer;
    std::uint64_t since = 0;
    van::PeerId connection = 0;
  };
  // An entry that came from a replica that was not the predecessor then.
  struct Stray {
    std::pair<std::uint32_t, std::uint64_t> sender;
    van::PeerId connection = 0;
    std::uint64_t stream = 0;
  };

  std::optional<Predecessor> predecessor_;
  ReplicationReceiver receiver_;
  std::optional<Stray> stray_;
  std::optional<Peer> awaited_;
  std::uint64_t awaited_since_ = 0;  // the epoch
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_PREDECESSOR_LINK_H_
