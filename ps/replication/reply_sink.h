// ReplySink is the interface by which replicas answer over the connection that a message came over.
// Connections implements it; on the data thread's loop.
#ifndef LEEWAY_PS_REPLICATION_REPLY_SINK_H_
#define LEEWAY_PS_REPLICATION_REPLY_SINK_H_

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "ps/replication/log/log_entry.h"
#include "van/van.h"

namespace leeway::ps {

class ReplySink {
 public:
  virtual ~ReplySink() = default;
  // Answers a request.
  virtual void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) = 0;
  // Sends to another data thread.
  virtual void SendBack(van::PeerId connection, const proto::AnyMessage& message) = 0;
  // Ends the connection for what it has sent, once the message is dealt with.
  virtual void DropSoon(van::PeerId peer, const absl::Status& why) = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_REPLY_SINK_H_
