// The follower's side of a shard's log: applies an entry as the head has applied it.
#ifndef LEEWAY_PS_SHARD_LOG_FOLLOWER_H_
#define LEEWAY_PS_SHARD_LOG_FOLLOWER_H_

#include <vector>

#include "absl/status/status.h"
#include "ps/shard/state/shard_state.h"

namespace leeway::ps {

// Applies the next entry: its updates, if it is a Close, and the entry itself.
// FAILED_PRECONDITION: a table or its settings are not here yet; nothing has changed, and the entry
// can be tried again. Any other error: this replica is no longer what its head is.
absl::Status FollowLog(const std::vector<LogEntry>& updates, const LogEntry& entry,
                       ShardState* state);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_LOG_FOLLOWER_H_
