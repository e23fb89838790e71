// What a reply means: whether it is what its request asked for, and whether a push was refused. The
// proto layer has checked that it is sound in itself; a server that answers another question must
// not make the worker write out of bounds.
#ifndef LEEWAY_WORKER_REQUESTS_ANSWERS_H_
#define LEEWAY_WORKER_REQUESTS_ANSWERS_H_

#include <span>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"
#include "worker/requests/request.h"

namespace leeway::worker {

// INTERNAL, saying what was expected. For replies whose result is OK.
absl::Status CheckAnswer(const Request& request, const proto::Reply& reply,
                         std::span<const runtime::Buffer> payload);

// Whether a server that answers with it has not applied the push, and never will. It ends the wait
// of a pull that came with a push, or of an answer that waits for a replica, with
// DEADLINE_EXCEEDED, and says UNKNOWN where a pull fails after its push was applied.
bool RefusesPush(const absl::Status& answer);

// Whether that answer ends the operation, but not the push that it is to: the push has to be asked
// for again, alone, until it is acknowledged or refused. What is UNKNOWN of a push alone is so for
// good.
bool LeavesPushOpen(const Request& request, const absl::Status& answer);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_REQUESTS_ANSWERS_H_
