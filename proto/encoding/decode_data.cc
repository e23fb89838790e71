#include "proto/encoding/decode_parts.h"
#include "proto/encoding/decode_payload.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

absl::Status ReadId(const wire::RequestId* from, RequestId* to) {
  if (from == nullptr) return Wrong("id is missing");
  to->incarnation = from->incarnation();
  to->sequence = from->sequence();
  to->worker = from->worker();
  to->shard = from->shard();
  LEEWAY_RETURN_IF_ERROR(CheckRange("id.sequence", to->sequence, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(CheckRange("id.worker", to->worker, 0, kWorkersMax - 1));
  return CheckRange("id.shard", to->shard, 0, kShardsMax - 1);
}

absl::Status ReadOp(wire::Op op, Op* to) {
  return ReadEnum("op", static_cast<std::uint8_t>(op), Op::kPush, Op::kPushPull, to);
}

// The payload of a pull: a dense block has no frames, rows have their keys.
absl::Status TakePull(const Request& request, Input& in) {
  if (request.kind == TableKind::kDense) {
    LEEWAY_RETURN_IF_ERROR(
        CheckDense(request.block, request.keys, request.elements, request.dtype));
    return CheckFrameCount(in, 0);
  }
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", request.block, 0, 0));
  LEEWAY_RETURN_IF_ERROR(CheckRange("elements", request.elements, 0, 0));
  return TakeFrames(in, {KeysFrame(request.keys)});
}

absl::Status TakePush(const Request& request, Input& in) {
  return TakeTarget({.kind = request.kind,
                     .dtype = request.dtype,
                     .block = request.block,
                     .keys = request.keys,
                     .elements = request.elements,
                     .coded = request.codec != 0},
                    request.dtype, {}, in);
}

bool CarriesValues(const Reply& reply) { return reply.result.ok() && HasPull(reply.op); }

absl::Status TakeParts(const Reply& reply, Input& in) {
  LEEWAY_RETURN_IF_ERROR(CheckDense(0, reply.keys, reply.elements, reply.dtype));
  std::uint64_t bytes = 0;  // cannot overflow: each is below 2^48
  for (const ReplyPart& part : reply.parts) {
    LEEWAY_RETURN_IF_ERROR(CheckRange("part's bytes", part.bytes, 0, kTableElementsMax));
    bytes += part.bytes;
  }
  return TakeFrames(in, {{"parts", bytes, 1, true}});
}

absl::Status TakeValues(const Reply& reply, Input& in) {
  if (reply.coded) return TakeParts(reply, in);
  const Frame values = ValuesFrame(reply.elements, reply.dtype);
  switch (reply.kind) {
    case TableKind::kDense:
      LEEWAY_RETURN_IF_ERROR(CheckDense(0, reply.keys, reply.elements, reply.dtype));
      return TakeFrames(in, {values});
    case TableKind::kSparse:
      LEEWAY_RETURN_IF_ERROR(CheckRows(reply.keys, reply.elements));
      return TakeFrames(in, {values});
    case TableKind::kRagged:
      LEEWAY_RETURN_IF_ERROR(TakeFrames(in, {WidthsFrame(reply.keys), values}));
      return CheckWidths(in.payload[0], reply.elements);
  }
  return absl::OkStatus();
}

absl::Status ReadParts(const wire::Reply& from, Reply* to) {
  const std::size_t size = SizeOrZero(from.parts());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of parts", size, 0, to->coded ? kReplyPartsMax : 0));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("parts", from.parts(), alignof(wire::ReplyPart)));
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ReplyPart& part = *from.parts()->Get(static_cast<std::uint32_t>(i));
    to->parts.push_back({part.version(), part.bytes(), part.codec(), part.whole()});
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Read(const wire::Request& from, Input& in, Request* to) {
  LEEWAY_RETURN_IF_ERROR(ReadId(from.id(), &to->id));
  to->epoch = from.epoch();
  to->table = from.table();
  LEEWAY_RETURN_IF_ERROR(CheckRange("table", to->table, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("kind", from.kind(), TableKind::kDense, TableKind::kRagged, &to->kind));
  LEEWAY_RETURN_IF_ERROR(ReadOp(from.op(), &to->op));
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("dtype", from.dtype(), DType::kFloat32, DType::kInt64, &to->dtype));
  to->clock = from.clock();
  to->block = from.block();
  to->keys = from.keys();
  LEEWAY_RETURN_IF_ERROR(CheckRange("keys", to->keys, 0, kKeysPerRequestMax));
  to->elements = from.elements();
  LEEWAY_RETURN_IF_ERROR(CheckRange("elements", to->elements, 0, kTableElementsMax));
  to->timeout_ms = from.timeout_ms();
  LEEWAY_RETURN_IF_ERROR(CheckRange("timeout_ms", to->timeout_ms, 0, kTimeoutMsMax));
  LEEWAY_RETURN_IF_ERROR(ReadLearningRate(from, to));
  to->after = from.after();
  LEEWAY_RETURN_IF_ERROR(CheckRange("after", to->after, 0, to->id.sequence - 1));
  to->priority = from.priority();
  to->codec = from.codec();
  LEEWAY_RETURN_IF_ERROR(CheckRange("codec", to->codec, 0, HasPush(to->op) ? kAny : 0));
  to->have = from.have();
  const bool versions = to->kind == TableKind::kDense && HasPull(to->op);
  LEEWAY_RETURN_IF_ERROR(CheckRange("have", to->have, 0, versions ? kAny : 0));
  to->read_updates = from.read_updates();
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("read_updates", to->read_updates, 0, HasPush(to->op) ? kAny : 0));
  return HasPush(to->op) ? TakePush(*to, in) : TakePull(*to, in);
}

absl::Status Read(const wire::Reply& from, Input& in, Reply* to) {
  LEEWAY_RETURN_IF_ERROR(ReadId(from.id(), &to->id));
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  LEEWAY_RETURN_IF_ERROR(ReadOp(from.op(), &to->op));
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("kind", from.kind(), TableKind::kDense, TableKind::kRagged, &to->kind));
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("dtype", from.dtype(), DType::kFloat32, DType::kInt64, &to->dtype));
  to->clock = from.clock();
  to->slowest_clock = from.slowest_clock();
  to->staleness = from.staleness();
  to->keys = from.keys();
  LEEWAY_RETURN_IF_ERROR(CheckRange("keys", to->keys, 0, kKeysPerRequestMax));
  to->elements = from.elements();
  LEEWAY_RETURN_IF_ERROR(CheckRange("elements", to->elements, 0, kTableElementsMax));
  to->provisional = from.provisional();
  if (to->provisional && !(to->result.ok() && HasPush(to->op))) {
    return Wrong("provisional is set, may be set with a push that was accepted");
  }
  to->coded = from.coded();
  const bool may_be_coded = CarriesValues(*to) && to->kind == TableKind::kDense;
  LEEWAY_RETURN_IF_ERROR(CheckRange("coded", to->coded, 0, may_be_coded));
  LEEWAY_RETURN_IF_ERROR(ReadParts(from, to));
  to->version = from.version();
  LEEWAY_RETURN_IF_ERROR(CheckRange("version", to->version, 0, CarriesValues(*to) ? kAny : 0));
  to->updates = from.updates();
  LEEWAY_RETURN_IF_ERROR(CheckRange("updates", to->updates, 0, CarriesValues(*to) ? kAny : 0));
  return CarriesValues(*to) ? TakeValues(*to, in) : CheckFrameCount(in, 0);
}

absl::Status Read(const wire::ClockTick& from, Input&, ClockTick* to) {
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  to->incarnation = from.incarnation();
  to->epoch = from.epoch();
  to->clock = from.clock();
  to->since = from.since();
  LEEWAY_RETURN_IF_ERROR(CheckRange("since", to->since, 0, to->clock));
  const std::size_t size = SizeOrZero(from.watermarks());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of watermarks", size, 0, 2 * kShardsMax));
  LEEWAY_RETURN_IF_ERROR(
      CheckAligned("watermarks", from.watermarks(), alignof(wire::ShardWatermark)));
  to->watermarks.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ShardWatermark& mark = *from.watermarks()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(CheckRange("watermark's shard", mark.shard(), 0, kShardsMax - 1));
    to->watermarks[i] = {mark.sequence(), mark.shard(), mark.held()};
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::ClockAck& from, Input&, ClockAck* to) {
  to->clock = from.clock();
  to->stable = from.stable();
  to->epoch = from.epoch();
  return absl::OkStatus();
}

absl::Status Read(const wire::EnterClock& from, Input&, EnterClock* to) {
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  to->incarnation = from.incarnation();
  to->epoch = from.epoch();
  return absl::OkStatus();
}

absl::Status Read(const wire::EnterClockReply& from, Input&, EnterClockReply* to) {
  to->clock = from.clock();
  to->epoch = from.epoch();
  return absl::OkStatus();
}

// Payloads of a handler or a tool, which Leeway does not interpret: one frame of any size.

absl::Status Read(const wire::Call& from, Input& in, Call* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadName("handler", from.handler(), in, &to->handler));
  return TakeBytes(in);
}

absl::Status Read(const wire::CallReply& from, Input& in, CallReply* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  return TakeBytes(in);
}

absl::Status Read(const wire::StatusRequest& from, Input&, StatusRequest* to) {
  to->request = from.request();
  return absl::OkStatus();
}

absl::Status Read(const wire::StatusReply& from, Input& in, StatusReply* to) {
  to->request = from.request();
  return TakeBytes(in);
}

// ---- batches of small pushes ----

namespace {

absl::Status ReadPush(const wire::BatchedPush& from, DType dtype, BatchedPush* to) {
  *to = {.sequence = from.sequence(),
         .after = from.after(),
         .block = from.block(),
         .elements = from.elements(),
         .shard = from.shard(),
         .table = from.table()};
  LEEWAY_RETURN_IF_ERROR(CheckRange("sequence", to->sequence, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(CheckRange("after", to->after, 0, to->sequence - 1));
  LEEWAY_RETURN_IF_ERROR(CheckRange("shard", to->shard, 0, kShardsMax - 1));
  LEEWAY_RETURN_IF_ERROR(CheckRange("table", to->table, 1, kAny));
  LEEWAY_RETURN_IF_ERROR(CheckDense(to->block, 0, to->elements, dtype));
  return CheckRange("bytes of a push", to->elements * SizeOf(dtype), 1, kBatchedPushBytesMax);
}

template <class T>
absl::Status CheckVector(absl::string_view number, absl::string_view field,
                         const flatbuffers::Vector<const T*>* vector) {
  LEEWAY_RETURN_IF_ERROR(CheckRange(number, SizeOrZero(vector), 1, kPushesPerBatchMax));
  return CheckAligned(field, vector, alignof(T));
}

}  // namespace

absl::Status Read(const wire::PushBatch& from, Input& in, PushBatch* to) {
  to->incarnation = from.incarnation();
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  to->epoch = from.epoch();
  LEEWAY_RETURN_IF_ERROR(
      ReadEnum("dtype", from.dtype(), DType::kFloat32, DType::kInt64, &to->dtype));
  to->clock = from.clock();
  to->timeout_ms = from.timeout_ms();
  LEEWAY_RETURN_IF_ERROR(CheckRange("timeout_ms", to->timeout_ms, 0, kTimeoutMsMax));
  LEEWAY_RETURN_IF_ERROR(ReadLearningRate(from, to));
  to->priority = from.priority();
  LEEWAY_RETURN_IF_ERROR(CheckVector("number of pushes", "pushes", from.pushes()));
  to->pushes.resize(from.pushes()->size());
  std::uint64_t elements = 0;
  for (std::size_t i = 0; i < to->pushes.size(); ++i) {
    const auto at = static_cast<flatbuffers::uoffset_t>(i);
    LEEWAY_RETURN_IF_ERROR(ReadPush(*from.pushes()->Get(at), to->dtype, &to->pushes[i]));
    elements += to->pushes[i].elements;
  }
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("bytes of all pushes", elements * SizeOf(to->dtype), 1, kBatchBytesMax));
  return TakeFrames(in, {ValuesFrame(elements, to->dtype)});
}

absl::Status Read(const wire::PushAcks& from, Input&, PushAcks* to) {
  to->incarnation = from.incarnation();
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  LEEWAY_RETURN_IF_ERROR(CheckVector("number of acks", "acks", from.acks()));
  to->acks.resize(from.acks()->size());
  for (std::size_t i = 0; i < to->acks.size(); ++i) {
    const wire::PushAck& ack = *from.acks()->Get(static_cast<flatbuffers::uoffset_t>(i));
    LEEWAY_RETURN_IF_ERROR(CheckRange("sequence", ack.sequence(), 1, kAny));
    LEEWAY_RETURN_IF_ERROR(CheckRange("shard", ack.shard(), 0, kShardsMax - 1));
    to->acks[i] = {ack.sequence(), ack.shard(), ack.provisional()};
  }
  return absl::OkStatus();
}

}  // namespace leeway::proto::decode
