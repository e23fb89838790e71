// Whether a reply is what its request asked for. The proto layer has checked that it is sound in
// itself; a server that answers another question must not make the worker write out of bounds.
#ifndef LEEWAY_WORKER_ANSWERS_H_
#define LEEWAY_WORKER_ANSWERS_H_

#include <span>

#include "absl/status/status.h"
#include "proto/messages.h"
#include "runtime/buffer.h"
#include "worker/request.h"

namespace leeway::worker {

// INTERNAL, saying what was expected. For replies whose result is OK.
absl::Status CheckAnswer(const Request& request, const proto::Reply& reply,
                         std::span<const runtime::Buffer> payload);

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_ANSWERS_H_
