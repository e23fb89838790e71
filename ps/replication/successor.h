// The queue of what one replica sends to the next: for a state transfer first the pieces of the
// state, then the log.
#ifndef LEEWAY_PS_REPLICATION_SUCCESSOR_H_
#define LEEWAY_PS_REPLICATION_SUCCESSOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "proto/messages/messages.h"
#include "ps/replication/log/log_entry.h"
#include "ps/replication/log/replication_sender.h"
#include "runtime/memory/byte_budget.h"

namespace leeway::ps {

// A data thread of one start of one server.
struct Peer {
  proto::ShardOwner place;
  std::uint64_t incarnation = 0;
  friend bool operator==(const Peer&, const Peer&) = default;

  // A connection says which server it comes from, but not which of its threads.
  std::pair<std::uint32_t, std::uint64_t> server() const {
    return {place.server_rank, incarnation};
  }
};

class Successor {
 public:
  // `budget` is charged for entries that wait until a state transfer is over.
  Successor(const Peer& peer, std::uint64_t stream, const ReplicationSender::Limits& limits,
            runtime::ByteBudget* budget)
      : peer_(peer), sender_(stream, limits), budget_(budget) {}
  ~Successor();
  Successor(const Successor&) = delete;
  Successor& operator=(const Successor&) = delete;

  // A state transfer: the pieces go out as the window allows, and what is appended meanwhile after
  // them.
  void BeginTransfer(LogEntry begin, std::vector<LogEntry> pieces);
  void Append(LogEntry entry);

  // Sends what may be sent; `send` returns false where the connection takes nothing now.
  void Pump(absl::Time now, const std::function<bool(LogEntry*)>& send);

  const Peer& peer() const { return peer_; }
  ReplicationSender& sender() { return sender_; }
  const ReplicationSender& sender() const { return sender_; }
  // Everything has been sent.
  bool CaughtUp() const { return pieces_.empty() && backlog_.empty() && sender_.all_sent(); }

 private:
  // Hands the next piece, or the next entry behind the pieces, to the sender. False: there is none.
  bool QueueNext();

  const Peer peer_;
  ReplicationSender sender_;
  runtime::ByteBudget* const budget_;
  std::deque<LogEntry> pieces_;
  std::deque<LogEntry> backlog_;  // appended while there were pieces
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_SUCCESSOR_H_
