// TakePayload checks the payload frames of a message against its fields: as many as it has, and
// each of exactly the size that the counts say. A frame that is not aligned for its entries is
// replaced by an aligned copy, and so is one that its sender could still change, if its checked
// content is relied upon.
#ifndef LEEWAY_PROTO_ENCODING_TAKE_PAYLOAD_H_
#define LEEWAY_PROTO_ENCODING_TAKE_PAYLOAD_H_

#include <span>

#include "absl/status/status.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::proto {

using Frames = std::span<runtime::Buffer>;

absl::Status CheckFrameCount(Frames payload, std::size_t count);
// One frame of any bytes, to be parsed by a handler or a tool.
absl::Status TakeBytes(Frames payload);
// 1 to kCallFramesMax frames of any bytes. The first is to be parsed; the others are aligned for
// any number, and may change while they are used.
absl::Status TakeCallFrames(Frames payload);

template <class Message>
absl::Status TakePayload(const Message&, Frames payload) {
  return CheckFrameCount(payload, 0);
}
absl::Status TakePayload(const Request& m, Frames payload);
absl::Status TakePayload(const Reply& m, Frames payload);
absl::Status TakePayload(const PushBatch& m, Frames payload);
absl::Status TakePayload(const Replicate& m, Frames payload);
inline absl::Status TakePayload(const Call&, Frames payload) { return TakeCallFrames(payload); }
inline absl::Status TakePayload(const CallReply&, Frames payload) {
  return TakeCallFrames(payload);
}
inline absl::Status TakePayload(const StatusReply&, Frames payload) { return TakeBytes(payload); }
inline absl::Status TakePayload(const AdminReply&, Frames payload) { return TakeBytes(payload); }

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_ENCODING_TAKE_PAYLOAD_H_
