// Where a shard's effects go: what its replicas have to be told, and its answers to workers, which
// must not say more than what is on every replica.
#ifndef LEEWAY_PS_REPLICATION_LOG_SHARD_EFFECTS_H_
#define LEEWAY_PS_REPLICATION_LOG_SHARD_EFFECTS_H_

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "ps/replication/log/log_entry.h"
#include "van/van.h"

namespace leeway::ps {

class ShardEffects {
 public:
  virtual ~ShardEffects() = default;

  // Whether there is anybody to tell.
  virtual bool has_follower() const = 0;
  // Tells the followers. Updates come before their Close, all with its index.
  virtual void Log(LogEntry entry) = 0;
  // Whether what is held should be kept by its worker as well, since a head that dies loses it.
  virtual bool provisional() const = 0;

  // Answers once everything logged so far is on every replica; or now. At the deadline it says,
  // instead of that, who has not taken it.
  virtual void Answer(van::PeerId peer, proto::Reply reply, Payload payload,
                      absl::Time deadline) = 0;
  // Likewise to a reader, within what readers may have waiting. UNAVAILABLE: that is too much.
  virtual absl::Status AnswerReader(van::PeerId peer, proto::Reply reply, Payload payload,
                                    absl::Time deadline) = 0;
  virtual void AnswerNow(van::PeerId peer, proto::Reply reply) = 0;
  // What is here may not be what its replicas have, or would come to have: others are to lead.
  virtual void Broken(const absl::Status& why) = 0;
  // It has sent what no honest worker sends: its connection ends once this message is dealt with.
  virtual void Offended(van::PeerId peer, const absl::Status& why) = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_SHARD_EFFECTS_H_
