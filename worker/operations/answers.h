// Checks of replies against the requests that they answer. The proto layer has checked that a reply
// is well-formed; these checks keep a reply to another question from making the worker write out of
// bounds.
#ifndef LEEWAY_WORKER_OPERATIONS_ANSWERS_H_
#define LEEWAY_WORKER_OPERATIONS_ANSWERS_H_

#include <span>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "worker/operations/request.h"

namespace leeway::worker {

// INTERNAL if the reply is not what the request asked for. For replies whose result is OK.
absl::Status CheckAnswer(const Request& request, const proto::Reply& reply,
                         std::span<const runtime::Buffer> payload);

// Whether a server that answers so has not applied the push and never will. DEADLINE_EXCEEDED does
// not say so (it ends the wait of a push-pull's pull, or for a replica), nor does UNKNOWN (a pull
// failed after its push was applied).
bool RefusesPush(const absl::Status& answer);

// Whether a server answers that the table's policy has dropped the push, as late or too stale.
inline bool IsDropped(const absl::Status& answer) { return absl::IsCancelled(answer); }

// Whether that answer ends the operation, but not the push that it is to: the push is asked for
// again, alone, until it is acknowledged or refused. UNKNOWN to a push alone is final.
bool LeavesPushOpen(const Request& request, const absl::Status& answer);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_OPERATIONS_ANSWERS_H_
