// The connections of one data thread: which peers are there, and all that is sent to them.
//
// Lives on the thread's loop. A peer that breaks the protocol is dropped (Violation, DropSoon), and
// counted.
#ifndef LEEWAY_PS_DATA_STATE_CONNECTIONS_H_
#define LEEWAY_PS_DATA_STATE_CONNECTIONS_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "ps/data/state/replies.h"
#include "ps/replication/reply_sink.h"
#include "ps/table/counters.h"
#include "ps/table/inbound.h"
#include "runtime/loop/log_limiter.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/byte_budget.h"
#include "van/van.h"

namespace leeway::ps {

class Connections final : public ReplySink {
 public:
  Connections(runtime::Loop* loop, Counters* counters);

  // Before anything is sent. The van outlives all calls but Close(). Replies that wait are charged
  // to `send_queue`, as its own queues are.
  void SetVan(van::Van* van, std::shared_ptr<runtime::SharedByteBudget> send_queue) {
    van_ = van;
    replies_.SetSendQueue(std::move(send_queue));
  }
  // The van goes: sends that it reports done from here on are of no consequence.
  void Close() { replies_.Clear(); }

  void OnUp(van::PeerId peer, const van::Identity& identity) { peers_[peer] = identity; }
  void OnDown(van::PeerId peer) {
    peers_.erase(peer);
    replies_.DropPeer(peer);
  }
  // Null: there is no such peer.
  const van::Identity* Find(van::PeerId peer) const {
    const auto found = peers_.find(peer);
    return found == peers_.end() ? nullptr : &found->second;
  }
  const std::map<van::PeerId, van::Identity>& all() const { return peers_; }

  // Sends, after acknowledgements to that peer that wait to be sent together.
  absl::Status Send(van::PeerId peer, const proto::AnyMessage& message, Payload payload = {},
                    van::SendDone done = nullptr);
  // ReplySink. Answers a request: at once, or when the transport takes it (Replies).
  void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) override;
  void SendBack(van::PeerId connection, const proto::AnyMessage& message) override {
    Send(connection, message).IgnoreError();
  }
  void Refuse(const Inbound& inbound, const absl::Status& why);

  // Drops a peer for what it has sent: now, or in DropOffenders() so that answers leave before.
  void Violation(van::PeerId peer, const absl::Status& why);
  void DropSoon(van::PeerId peer, const absl::Status& why) override {
    offenders_.emplace_back(peer, why);
  }
  void DropOffenders();

  Replies& replies() { return replies_; }

 private:
  void OnUnsent(van::PeerId peer, proto::Reply reply, const absl::Status& why);

  Counters* const counters_;
  runtime::LogLimiter log_;
  van::Van* van_ = nullptr;
  std::map<van::PeerId, van::Identity> peers_;
  Replies replies_;
  std::vector<std::pair<van::PeerId, absl::Status>> offenders_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_DATA_STATE_CONNECTIONS_H_
