// The queues of replies, one for each worker or reader: replies with values leave by the priority
// of their requests, as the transport takes them (van/send_pacer.h).
//
// Lives on the data thread's loop. A reply without values goes at once: it is small, and workers
// wait for it to send more. The pushes that are acknowledged while one message is dealt with are
// acknowledged to each worker in one message. A reply that is asked for again while it waits is not
// sent twice. What waits for workers is charged to the budget of the process
// (LEEWAY_SEND_QUEUE_BYTES_MAX); a reply beyond it is dropped, and asked for again.
#ifndef LEEWAY_PS_DATA_STATE_REPLIES_H_
#define LEEWAY_PS_DATA_STATE_REPLIES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "ps/replication/log/log_entry.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/byte_budget.h"
#include "van/send_pacer.h"
#include "van/van.h"

namespace leeway::ps {

class Replies {
 public:
  // The bytes that wait for one reader, and for all readers of a thread, with what the transport
  // has taken and not sent yet: readers may be many, and slow. One answer may be longer.
  static constexpr std::uint64_t kReaderBytesMax = 32 << 20;
  static constexpr std::uint64_t kReadersBytesMax = 64 << 20;

  // Sends, and says how; `done` (may be null) as in van::Van::Send.
  using Send =
      std::function<absl::Status(van::PeerId, const proto::AnyMessage&, Payload, van::SendDone)>;
  // Whether a message that is sent now would leave rather than be queued.
  using Writable = std::function<bool(van::PeerId)>;
  // A reply that could not be sent.
  using Failed = std::function<void(van::PeerId, proto::Reply, const absl::Status&)>;

  Replies(runtime::Loop* loop, Send send, Writable writable, Failed failed);
  ~Replies() { Clear(); }

  // Before anything is added. Without it: a budget of its own, as large as a van's.
  void SetSendQueue(std::shared_ptr<runtime::SharedByteBudget> queue) {
    send_queue_ = std::move(queue);
  }

  // While one lives, acknowledgements of pushes are gathered. One at a time.
  class Gathering {
   public:
    explicit Gathering(Replies* replies) : replies_(replies) { replies_->gathering_ = true; }
    ~Gathering() { replies_->EndGathering(); }
    Gathering(const Gathering&) = delete;
    Gathering& operator=(const Gathering&) = delete;

   private:
    Replies* const replies_;
  };
  // Called before anything else is sent to `peer`, so that acknowledgements keep their place.
  void SendGathered(van::PeerId peer);

  // `peer` is up. `reader`: it is one (Config::read_only).
  void Add(van::PeerId peer, proto::Reply reply, Payload payload, bool reader = false);
  // Called before the values that a reader asks for are gathered. UNAVAILABLE: there is no room
  // now. PERMISSION_DENIED: it goes on asking, and does not read the answers.
  absl::Status CheckReader(van::PeerId peer);
  void DropPeer(van::PeerId peer);
  // The van goes: sends that it reports done from here on are of no consequence.
  void Clear();

 private:
  // Acknowledgements to one worker that wait to be sent together.
  struct Gathered {
    proto::Reply first;  // goes as it is where it stays alone
    std::vector<proto::PushAck> acks;
  };
  struct Waiting {
    proto::Reply reply;
    Payload payload;
    std::uint64_t bytes = 0;  // of the payload
  };
  // The highest priority first; within it, as they came.
  struct QueuePosition {
    std::int32_t priority = 0;
    std::uint64_t order = 0;
    friend bool operator<(const QueuePosition& a, const QueuePosition& b) {
      return a.priority != b.priority ? a.priority > b.priority : a.order < b.order;
    }
  };
  struct Queue {
    van::SendPacer ahead;
    std::map<QueuePosition, Waiting> waiting;
    std::set<std::pair<std::uint32_t, std::uint64_t>> ids;  // waiting: shard, sequence
    std::uint64_t bytes = 0;  // that they take; of a reader those handed over, too
    bool reader = false;
    std::uint64_t unread = 0;  // requests of a reader since its connection was writable
  };

  bool ReaderHasRoom(const Queue& queue, std::uint64_t bytes) const;
  // False: there is no room.
  bool Charge(Queue& queue, std::uint64_t bytes);
  void Release(Queue& queue, std::uint64_t bytes);
  void SendWithoutValues(van::PeerId peer, proto::Reply reply);
  void Gather(van::PeerId peer, proto::Reply reply);
  void EndGathering();
  bool MaySend(van::PeerId peer, Queue& queue, const Waiting& next) const;
  void SendNow(van::PeerId peer, Queue& queue, Waiting waiting);
  void OnDone(van::PeerId peer, std::uint64_t followed, std::uint64_t charged);

  runtime::Loop* const loop_;
  const Send send_;
  const Writable writable_;
  const Failed failed_;
  std::uint64_t next_order_ = 0;
  std::map<van::PeerId, Queue> queues_;
  std::uint64_t readers_bytes_ = 0;  // that wait for readers
  std::shared_ptr<runtime::SharedByteBudget> send_queue_;
  bool gathering_ = false;
  std::map<van::PeerId, Gathered> gathered_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STATE_REPLIES_H_
