#include <cmath>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "proto/decode_parts.h"
#include "proto/limits.h"
#include "runtime/status_macros.h"

namespace leeway::proto::decode {
namespace {

// One payload frame as the header describes it: `count` items of `width` bytes.
struct Frame {
  absl::string_view name;
  std::uint64_t count = 0;
  std::uint64_t width = 1;
};

absl::Status CheckFrameCount(const Input& in, std::size_t count) {
  if (in.payload.size() == count) [[likely]]
    return absl::OkStatus();
  return Wrong("number of payload frames is ", in.payload.size(), ", may be ", count);
}

// Counts are bounded before they come here, so that count × width cannot overflow.
absl::Status TakeFrame(const Frame& frame, runtime::Buffer* buffer) {
  if (buffer->size() != frame.count * frame.width) [[unlikely]] {
    return Wrong(frame.name, " are ", buffer->size(), " bytes of payload, may be ",
                 frame.count * frame.width, " (", frame.count, " of ", frame.width, " bytes)");
  }
  if (!buffer->aligned_to(frame.width)) [[unlikely]] {
    *buffer = runtime::Buffer::CopyOf(buffer->data(), buffer->size());
  }
  return absl::OkStatus();
}

absl::Status TakeFrames(Input& in, std::initializer_list<Frame> frames) {
  LEEWAY_RETURN_IF_ERROR(CheckFrameCount(in, frames.size()));
  runtime::Buffer* buffer = in.payload.data();
  for (const Frame& frame : frames) LEEWAY_RETURN_IF_ERROR(TakeFrame(frame, buffer++));
  return absl::OkStatus();
}

Frame KeysFrame(std::uint64_t keys) { return {"keys", keys, sizeof(std::uint64_t)}; }
Frame WidthsFrame(std::uint64_t keys) { return {"widths", keys, sizeof(std::uint32_t)}; }
Frame ValuesFrame(std::uint64_t elements, DType dtype) {
  return {"values", elements, SizeOf(dtype)};
}

absl::Status CheckWidths(const runtime::Buffer& widths, std::uint64_t elements) {
  std::uint64_t sum = 0;  // cannot overflow: kKeysPerRequestMax × kRowWidthMax
  for (const std::uint32_t width : widths.as<std::uint32_t>()) {
    LEEWAY_RETURN_IF_ERROR(CheckRange("width", width, 0, kRowWidthMax));
    sum += width;
  }
  if (sum == elements) return absl::OkStatus();
  return Wrong("elements are ", elements, ", widths add up to ", sum);
}

absl::Status CheckDense(std::uint64_t block, std::uint64_t keys, std::uint64_t elements,
                        DType dtype) {
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", block, 0, kTableElementsMax - 1));
  LEEWAY_RETURN_IF_ERROR(CheckRange("keys", keys, 0, 0));
  return CheckRange("elements", elements, 1, kBlockBytesMax / SizeOf(dtype));
}

// Rows of one width, which only the table knows: as many elements to each key.
absl::Status CheckRows(std::uint64_t keys, std::uint64_t elements) {
  if (keys == 0) return CheckRange("elements", elements, 0, 0);
  if (elements % keys == 0 && elements / keys >= 1 && elements / keys <= kRowWidthMax) {
    return absl::OkStatus();
  }
  return Wrong("elements are ", elements, ", may be 1 to ", kRowWidthMax, " for each of ", keys,
               " keys");
}

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

absl::Status TakeDense(const Request& request, Input& in) {
  LEEWAY_RETURN_IF_ERROR(CheckDense(request.block, request.keys, request.elements, request.dtype));
  if (!HasPush(request.op)) return CheckFrameCount(in, 0);
  return TakeFrames(in, {ValuesFrame(request.elements, request.dtype)});
}

absl::Status TakeRows(const Request& request, Input& in) {
  const Frame keys = KeysFrame(request.keys);
  const Frame values = ValuesFrame(request.elements, request.dtype);
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", request.block, 0, 0));
  if (!HasPush(request.op)) {
    LEEWAY_RETURN_IF_ERROR(CheckRange("elements", request.elements, 0, 0));
    return TakeFrames(in, {keys});
  }
  if (request.kind == TableKind::kSparse) {
    LEEWAY_RETURN_IF_ERROR(CheckRows(request.keys, request.elements));
    return TakeFrames(in, {keys, values});
  }
  LEEWAY_RETURN_IF_ERROR(TakeFrames(in, {keys, WidthsFrame(request.keys), values}));
  return CheckWidths(in.payload[1], request.elements);
}

absl::Status ReadLearningRate(const wire::Request& from, Request* to) {
  to->has_learning_rate = from.has_learning_rate();
  if (!to->has_learning_rate) return absl::OkStatus();
  to->learning_rate = from.learning_rate();
  if (std::isfinite(to->learning_rate)) return absl::OkStatus();
  return Wrong("learning_rate is ", to->learning_rate, ", may be finite");
}

bool CarriesValues(const Reply& reply) { return reply.result.ok() && HasPull(reply.op); }

absl::Status TakeValues(const Reply& reply, Input& in) {
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
  return to->kind == TableKind::kDense ? TakeDense(*to, in) : TakeRows(*to, in);
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
  return CarriesValues(*to) ? TakeValues(*to, in) : CheckFrameCount(in, 0);
}

absl::Status Read(const wire::ClockTick& from, Input&, ClockTick* to) {
  to->worker = from.worker();
  LEEWAY_RETURN_IF_ERROR(CheckRange("worker", to->worker, 0, kWorkersMax - 1));
  to->incarnation = from.incarnation();
  to->epoch = from.epoch();
  to->clock = from.clock();
  const std::size_t size = SizeOrZero(from.marks());
  LEEWAY_RETURN_IF_ERROR(CheckRange("number of marks", size, 0, kShardsMax));
  LEEWAY_RETURN_IF_ERROR(CheckAligned("marks", from.marks(), alignof(wire::ShardMark)));
  to->marks.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const wire::ShardMark& mark = *from.marks()->Get(static_cast<std::uint32_t>(i));
    LEEWAY_RETURN_IF_ERROR(CheckRange("mark's shard", mark.shard(), 0, kShardsMax - 1));
    to->marks[i] = {mark.sequence(), mark.shard()};
  }
  return absl::OkStatus();
}

absl::Status Read(const wire::ClockAck& from, Input&, ClockAck* to) {
  to->clock = from.clock();
  return absl::OkStatus();
}

// The payload of the next three is somebody else's bytes: one frame of any size.

absl::Status Read(const wire::Call& from, Input& in, Call* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadName("handler", from.handler(), in, &to->handler));
  return CheckFrameCount(in, 1);
}

absl::Status Read(const wire::CallReply& from, Input& in, CallReply* to) {
  to->request = from.request();
  LEEWAY_RETURN_IF_ERROR(ReadStatus(from.code(), from.reason(), in, &to->result));
  return CheckFrameCount(in, 1);
}

absl::Status Read(const wire::StatusRequest& from, Input&, StatusRequest* to) {
  to->request = from.request();
  return absl::OkStatus();
}

absl::Status Read(const wire::StatusReply& from, Input& in, StatusReply* to) {
  to->request = from.request();
  return CheckFrameCount(in, 1);
}

}  // namespace leeway::proto::decode
