// The frames of calls (leeway/call.h) as buffers of the transport, and back. No bytes are copied.
#ifndef LEEWAY_NODE_CALL_FRAMES_H_
#define LEEWAY_NODE_CALL_FRAMES_H_

#include <span>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "leeway/call.h"
#include "runtime/memory/buffer.h"

namespace leeway::node {

using FrameBuffers = absl::InlinedVector<runtime::Buffer, 3>;  // as van::Message::payload

// INVALID_ARGUMENT: no frame, or more than kCallFramesMax.
absl::Status CheckFrames(const CallFrames& frames);
FrameBuffers BuffersOf(CallFrames frames);
CallFrames FramesOf(std::span<const runtime::Buffer> buffers);

}  // namespace leeway::node

#endif  // LEEWAY_NODE_CALL_FRAMES_H_
