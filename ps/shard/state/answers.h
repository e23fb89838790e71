// Answers of a shard to requests: acknowledgements and refusals, and how long an answer may take.
#ifndef LEEWAY_PS_SHARD_STATE_ANSWERS_H_
#define LEEWAY_PS_SHARD_STATE_ANSWERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/shard/state/shard_state.h"
#include "ps/table/inbound.h"

namespace leeway::ps {

// The answer to a request as far as the request itself determines it.
proto::Reply ReplyTo(const proto::Request& request);

// The worker stops waiting for the answer at that time.
absl::Time DeadlineOf(const ShardState& state, const Inbound& inbound);

// The request fails. The connection ends, too, if its encoding was malformed.
void Refuse(const ShardState& state, const Inbound& inbound, const absl::Status& why);
// Likewise, once all that has been logged is on every replica, if it is a call: its error may tell
// of what its handler has read.
void RefuseWhenCommitted(const ShardState& state, const Inbound& inbound, const absl::Status& why);
// The call's handler has answered.
void AnswerCall(const ShardState& state, const Inbound& inbound, const runtime::Buffer& answer);
// The pull failed. If a push came with it, the push has been accepted, and the answer says so.
void RefusePull(const ShardState& state, const Inbound& inbound, const absl::Status& why);
// The push was accepted. `held`: it waits for its clock to close, and is not in the state yet, so
// that the answer waits for no replica.
void Acknowledge(const ShardState& state, const Inbound& inbound, bool held);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_STATE_ANSWERS_H_
