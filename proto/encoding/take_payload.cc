#include "proto/encoding/take_payload.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/encoding/read_fields.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto {
namespace {

template <class... Parts>
absl::Status WrongPayload(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckRange(absl::string_view field, std::uint64_t value, std::uint64_t min,
                        std::uint64_t max) {
  if (value >= min && value <= max) [[likely]]
    return absl::OkStatus();
  return WrongPayload(field, OutOfRange(value, min, max));
}

// One payload frame as the header describes it: `count` entries of `width` bytes.
struct Frame {
  absl::string_view name;
  std::uint64_t count = 0;
  std::uint64_t width = 1;
  bool trusted = false;  // its checked content is relied upon later, so that it must not change
  bool coded = false;    // of a codec: at least 1 byte, and fewer than count × width
};

Frame KeysFrame(std::uint64_t keys) { return {"keys", keys, sizeof(std::uint64_t), true}; }
Frame WidthsFrame(std::uint64_t keys) { return {"widths", keys, sizeof(std::uint32_t), true}; }
Frame ValuesFrame(std::uint64_t elements, DType dtype) {
  return {"values", elements, SizeOf(dtype)};
}

// A codec decodes the checked bytes later, so they may not change in between.
absl::Status TakeCoded(const Frame& frame, runtime::Buffer* buffer) {
  const std::uint64_t bytes = frame.count * frame.width;
  if (buffer->empty() || buffer->size() >= bytes) {
    return WrongPayload("encoded ", frame.name, " are ", buffer->size(),
                        " bytes of payload, may be at least 1 and fewer than the ", bytes,
                        " that they stand for");
  }
  if (buffer->may_change()) *buffer = runtime::Buffer::CopyOf(buffer->data(), buffer->size());
  return absl::OkStatus();
}

absl::Status TakeFrame(const Frame& frame, runtime::Buffer* buffer) {
  if (frame.coded) return TakeCoded(frame, buffer);
  if (buffer->size() != frame.count * frame.width) [[unlikely]] {
    return WrongPayload(frame.name, " are ", buffer->size(), " bytes of payload, may be ",
                        frame.count * frame.width, " (", frame.count, " of ", frame.width,
                        " bytes)");
  }
  if (!buffer->aligned_to(frame.width) || (frame.trusted && buffer->may_change())) [[unlikely]] {
    *buffer = runtime::Buffer::CopyOf(buffer->data(), buffer->size());
  }
  return absl::OkStatus();
}

absl::Status TakeEach(Frames payload, std::span<const Frame> frames) {
  LEEWAY_RETURN_IF_ERROR(CheckFrameCount(payload, frames.size()));
  runtime::Buffer* buffer = payload.data();
  for (const Frame& frame : frames) LEEWAY_RETURN_IF_ERROR(TakeFrame(frame, buffer++));
  return absl::OkStatus();
}

// Takes these frames; others are an error. The caller has bounded the counts, so that count × width
// cannot overflow.
absl::Status TakeFrames(Frames payload, std::initializer_list<Frame> frames) {
  return TakeEach(payload, {frames.begin(), frames.size()});
}

// OK if the widths add up to the elements.
absl::Status CheckWidths(const runtime::Buffer& widths, std::uint64_t elements) {
  std::uint64_t sum = 0;  // cannot overflow: kKeysPerRequestMax × kRowWidthMax
  for (const std::uint32_t width : widths.as<std::uint32_t>()) {
    LEEWAY_RETURN_IF_ERROR(CheckRange("width", width, 0, kRowWidthMax));
    sum += width;
  }
  if (sum == elements) return absl::OkStatus();
  return WrongPayload("elements are ", elements, ", widths add up to ", sum);
}

absl::Status CheckDense(std::uint64_t block, std::uint64_t keys, std::uint64_t elements,
                        DType dtype) {
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", block, 0, kTableElementsMax - 1));
  LEEWAY_RETURN_IF_ERROR(CheckRange("keys", keys, 0, 0));
  return CheckRange("elements", elements, 1, kBlockBytesMax / SizeOf(dtype));
}

// OK if the elements divide evenly over the keys. Only the table knows the width of its rows.
absl::Status CheckRows(std::uint64_t keys, std::uint64_t elements) {
  if (keys == 0) return CheckRange("elements", elements, 0, 0);
  if (elements % keys == 0 && elements / keys >= 1 && elements / keys <= kRowWidthMax) {
    return absl::OkStatus();
  }
  return WrongPayload("elements are ", elements, ", may be 1 to ", kRowWidthMax, " for each of ",
                      keys, " keys");
}

// The target of a message: a dense block, or rows of a sparse or ragged table, with a value for
// each element.
struct Target {
  TableKind kind = TableKind::kDense;
  DType dtype = DType::kFloat32;
  std::uint64_t block = 0;
  std::uint64_t keys = 0;      // at most kKeysPerRequestMax
  std::uint64_t elements = 0;  // at most kTableElementsMax
  bool coded = false;          // a codec has encoded the values
};

absl::Status CheckTarget(const Target& target) {
  if (target.kind == TableKind::kDense) {
    return CheckDense(target.block, target.keys, target.elements, target.dtype);
  }
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", target.block, 0, 0));
  if (target.kind == TableKind::kSparse) return CheckRows(target.keys, target.elements);
  return absl::OkStatus();  // CheckWidths, if there are widths
}

// Checks the target's counts and takes its frames: keys, widths, values of type `values` (which may
// be another type than the table's), and `more` behind them.
absl::Status TakeTarget(const Target& target, DType values, std::initializer_list<Frame> more,
                        Frames payload) {
  LEEWAY_RETURN_IF_ERROR(CheckTarget(target));
  std::array<Frame, 5> frames;  // no message has more
  auto end = frames.begin();
  if (target.kind != TableKind::kDense) *end++ = KeysFrame(target.keys);
  if (target.kind == TableKind::kRagged) *end++ = WidthsFrame(target.keys);
  *end = ValuesFrame(target.elements, values);
  (end++)->coded = target.coded;
  end = std::copy(more.begin(), more.end(), end);
  LEEWAY_RETURN_IF_ERROR(TakeEach(payload, {frames.begin(), end}));
  if (target.kind != TableKind::kRagged) return absl::OkStatus();
  return CheckWidths(payload[1], target.elements);
}

// The payload of a pull: a dense block has no frames, rows have their keys.
absl::Status TakePull(const Request& request, Frames payload) {
  if (request.kind == TableKind::kDense) {
    LEEWAY_RETURN_IF_ERROR(
        CheckDense(request.block, request.keys, request.elements, request.dtype));
    return CheckFrameCount(payload, 0);
  }
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", request.block, 0, 0));
  LEEWAY_RETURN_IF_ERROR(CheckRange("elements", request.elements, 0, 0));
  return TakeFrames(payload, {KeysFrame(request.keys)});
}

absl::Status TakePush(const Request& request, Frames payload) {
  return TakeTarget({.kind = request.kind,
                     .dtype = request.dtype,
                     .block = request.block,
                     .keys = request.keys,
                     .elements = request.elements,
                     .coded = request.codec != 0},
                    request.dtype, {}, payload);
}

// Both are for a handler to read, so that a size is all that can be wrong with them.
absl::Status TakeCall(const Request& request, Frames payload) {
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", request.block, 0, 0));
  LEEWAY_RETURN_IF_ERROR(CheckRange("keys", request.keys, 0, 0));
  LEEWAY_RETURN_IF_ERROR(CheckRange("elements", request.elements, 0, 0));
  LEEWAY_RETURN_IF_ERROR(CheckFrameCount(payload, 2));
  LEEWAY_RETURN_IF_ERROR(
      CheckRange("bytes of the handler's name", payload[0].size(), 1, kNameBytesMax));
  for (std::size_t i = 0; i < 2; ++i) LEEWAY_RETURN_IF_ERROR(TakeBytes(payload.subspan(i, 1)));
  return absl::OkStatus();
}

absl::Status TakeParts(const Reply& reply, Frames payload) {
  LEEWAY_RETURN_IF_ERROR(CheckDense(0, reply.keys, reply.elements, reply.dtype));
  std::uint64_t bytes = 0;  // cannot overflow: each is below 2^48
  for (const ReplyPart& part : reply.parts) {
    bytes += part.bytes;
  }
  return TakeFrames(payload, {{"parts", bytes, 1, true}});
}

absl::Status TakeValues(const Reply& reply, Frames payload) {
  if (reply.coded) return TakeParts(reply, payload);
  const Frame values = ValuesFrame(reply.elements, reply.dtype);
  switch (reply.kind) {
    case TableKind::kDense:
      LEEWAY_RETURN_IF_ERROR(CheckDense(0, reply.keys, reply.elements, reply.dtype));
      return TakeFrames(payload, {values});
    case TableKind::kSparse:
      LEEWAY_RETURN_IF_ERROR(CheckRows(reply.keys, reply.elements));
      return TakeFrames(payload, {values});
    case TableKind::kRagged:
      LEEWAY_RETURN_IF_ERROR(TakeFrames(payload, {WidthsFrame(reply.keys), values}));
      return CheckWidths(payload[0], reply.elements);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFrameCount(Frames payload, std::size_t count) {
  if (payload.size() == count) [[likely]]
    return absl::OkStatus();
  return WrongPayload("number of payload frames is ", payload.size(), ", may be ", count);
}

absl::Status TakeBytes(Frames payload) {
  LEEWAY_RETURN_IF_ERROR(CheckFrameCount(payload, 1));
  runtime::Buffer& bytes = payload[0];
  if (bytes.may_change()) bytes = runtime::Buffer::CopyOf(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status TakeCallFrames(Frames payload) {
  if (payload.empty() || payload.size() > kCallFramesMax) {
    return WrongPayload("number of payload frames is ", payload.size(), ", may be 1 to ",
                        kCallFramesMax);
  }
  LEEWAY_RETURN_IF_ERROR(TakeBytes(payload.first(1)));
  for (runtime::Buffer& frame : payload.subspan(1)) {
    if (frame.aligned_to(alignof(std::uint64_t))) continue;
    frame = runtime::Buffer::CopyOf(frame.data(), frame.size());
  }
  return absl::OkStatus();
}

absl::Status TakePayload(const Request& m, Frames payload) {
  if (m.op == Op::kCall) return TakeCall(m, payload);
  return HasPush(m.op) ? TakePush(m, payload) : TakePull(m, payload);
}

absl::Status TakePayload(const Reply& m, Frames payload) {
  if (m.has_answer()) return TakeBytes(payload);
  return m.has_values() ? TakeValues(m, payload) : CheckFrameCount(payload, 0);
}

absl::Status TakePayload(const PushBatch& m, Frames payload) {
  const std::size_t width = SizeOf(m.dtype);
  std::uint64_t elements = 0;
  for (const BatchedPush& push : m.pushes) {
    LEEWAY_RETURN_IF_ERROR(
        CheckRange("bytes of a push", push.elements * width, 1, kBatchedPushBytesMax));
    elements += push.elements;
  }
  LEEWAY_RETURN_IF_ERROR(CheckRange("bytes of all pushes", elements * width, 1, kBatchBytesMax));
  return TakeFrames(payload, {ValuesFrame(elements, m.dtype)});
}

absl::Status TakePayload(const Replicate& entry, Frames payload) {
  const Target target{.kind = entry.table_kind,
                      .dtype = entry.dtype,
                      .block = entry.block,
                      .keys = entry.keys,
                      .elements = entry.elements,
                      .coded = entry.has().push && entry.codec != 0};
  const DType compute = ComputeType(entry.dtype);
  switch (entry.kind) {
    case LogEntryKind::kPush:
    case LogEntryKind::kHeld:
    case LogEntryKind::kEffect:
    case LogEntryKind::kPublishedBlock:
      return TakeTarget(target, entry.dtype, {}, payload);
    case LogEntryKind::kUpdate:
      return TakeTarget(target, compute, {}, payload);
    case LogEntryKind::kTransferPiece: {
      const Frame state{"state", entry.state_slots * entry.elements, SizeOf(compute)};
      const bool dense = entry.table_kind == TableKind::kDense;
      const Frame steps{"steps", dense ? 1 : entry.keys, sizeof(std::uint64_t)};
      return TakeTarget(target, entry.dtype, {state, steps}, payload);
    }
    case LogEntryKind::kCall:
    case LogEntryKind::kAnswer:
      return TakeBytes(payload);
    default:
      return CheckFrameCount(payload, 0);
  }
}

}  // namespace leeway::proto
