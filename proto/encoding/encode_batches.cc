#include <vector>

#include "proto/encoding/encode_parts.h"

namespace leeway::proto::encode {

Offset<wire::PushBatch> Write(Builder& out, const PushBatch& m) {
  wire::BatchedPush* to = nullptr;
  const auto pushes = out.CreateUninitializedVectorOfStructs(m.pushes.size(), &to);
  for (const BatchedPush& push : m.pushes) {
    *to++ = {push.sequence, push.after, push.block, push.elements, push.shard, push.table};
  }
  return wire::CreatePushBatch(out, m.incarnation, m.worker, m.epoch, Byte(m.dtype), m.clock,
                               m.timeout_ms, m.has_learning_rate ? m.learning_rate : 0,
                               m.has_learning_rate, m.priority, pushes);
}

Offset<wire::PushAcks> Write(Builder& out, const PushAcks& m) {
  wire::PushAck* to = nullptr;
  const auto acks = out.CreateUninitializedVectorOfStructs(m.acks.size(), &to);
  for (const PushAck& ack : m.acks) *to++ = {ack.sequence, ack.shard, ack.provisional};
  return wire::CreatePushAcks(out, m.incarnation, m.worker, acks);
}

}  // namespace leeway::proto::encode
