// The effects of a shard, as an interface: what it appends to the log, and what it finds wrong with
// itself or a peer. Implemented by Replica.
#ifndef LEEWAY_PS_REPLICATION_LOG_SHARD_EFFECTS_H_
#define LEEWAY_PS_REPLICATION_LOG_SHARD_EFFECTS_H_

#include "absl/status/status.h"
#include "ps/replication/log/log_entry.h"
#include "van/van.h"

namespace leeway::ps {

class ShardEffects {
 public:
  virtual ~ShardEffects() = default;

  // Whether another replica follows the log.
  virtual bool has_follower() const = 0;
  // Passes an entry on to the follower. Updates come before their Close, all with its index.
  virtual void Log(LogEntry entry) = 0;
  // Whether workers should keep pushes that are held as well, since a head that dies loses them.
  virtual bool provisional() const = 0;

  // The state here may differ from that of the other replicas, which are to lead.
  virtual void Broken(const absl::Status& why) = 0;
  // The peer has sent what no honest worker sends: its connection ends once this message is dealt
  // with.
  virtual void Offended(van::PeerId peer, const absl::Status& why) = 0;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_SHARD_EFFECTS_H_
