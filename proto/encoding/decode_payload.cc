#include "proto/encoding/decode_payload.h"

#include <algorithm>
#include <array>
#include <span>

#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"

namespace leeway::proto::decode {
namespace {

// A codec decodes the checked bytes later, so they may not change in between.
absl::Status TakeCoded(const Frame& frame, runtime::Buffer* buffer) {
  const std::uint64_t bytes = frame.count * frame.width;
  if (buffer->empty() || buffer->size() >= bytes) {
    return Wrong("encoded ", frame.name, " are ", buffer->size(),
                 " bytes of payload, may be at least 1 and fewer than the ", bytes,
                 " that they stand for");
  }
  if (buffer->may_change()) *buffer = runtime::Buffer::CopyOf(buffer->data(), buffer->size());
  return absl::OkStatus();
}

absl::Status TakeFrame(const Frame& frame, runtime::Buffer* buffer) {
  if (frame.coded) return TakeCoded(frame, buffer);
  if (buffer->size() != frame.count * frame.width) [[unlikely]] {
    return Wrong(frame.name, " are ", buffer->size(), " bytes of payload, may be ",
                 frame.count * frame.width, " (", frame.count, " of ", frame.width, " bytes)");
  }
  if (!buffer->aligned_to(frame.width) || (frame.trusted && buffer->may_change())) [[unlikely]] {
    *buffer = runtime::Buffer::CopyOf(buffer->data(), buffer->size());
  }
  return absl::OkStatus();
}

absl::Status TakeEach(Input& in, std::span<const Frame> frames) {
  LEEWAY_RETURN_IF_ERROR(CheckFrameCount(in, frames.size()));
  runtime::Buffer* buffer = in.payload.data();
  for (const Frame& frame : frames) LEEWAY_RETURN_IF_ERROR(TakeFrame(frame, buffer++));
  return absl::OkStatus();
}

absl::Status CheckTarget(const Target& target) {
  if (target.kind == TableKind::kDense) {
    return CheckDense(target.block, target.keys, target.elements, target.dtype);
  }
  LEEWAY_RETURN_IF_ERROR(CheckRange("block", target.block, 0, 0));
  if (target.kind == TableKind::kSparse) return CheckRows(target.keys, target.elements);
  return absl::OkStatus();  // CheckWidths, if there are widths
}

}  // namespace

absl::Status CheckFrameCount(const Input& in, std::size_t count) {
  if (in.payload.size() == count) [[likely]]
    return absl::OkStatus();
  return Wrong("number of payload frames is ", in.payload.size(), ", may be ", count);
}

absl::Status TakeBytes(Input& in) {
  LEEWAY_RETURN_IF_ERROR(CheckFrameCount(in, 1));
  runtime::Buffer& bytes = in.payload[0];
  if (bytes.may_change()) bytes = runtime::Buffer::CopyOf(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status TakeFrames(Input& in, std::initializer_list<Frame> frames) {
  return TakeEach(in, {frames.begin(), frames.size()});
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

absl::Status CheckRows(std::uint64_t keys, std::uint64_t elements) {
  if (keys == 0) return CheckRange("elements", elements, 0, 0);
  if (elements % keys == 0 && elements / keys >= 1 && elements / keys <= kRowWidthMax) {
    return absl::OkStatus();
  }
  return Wrong("elements are ", elements, ", may be 1 to ", kRowWidthMax, " for each of ", keys,
               " keys");
}

absl::Status TakeTarget(const Target& target, DType values, std::initializer_list<Frame> more,
                        Input& in) {
  LEEWAY_RETURN_IF_ERROR(CheckTarget(target));
  std::array<Frame, 5> frames;  // no message has more
  auto end = frames.begin();
  if (target.kind != TableKind::kDense) *end++ = KeysFrame(target.keys);
  if (target.kind == TableKind::kRagged) *end++ = WidthsFrame(target.keys);
  *end = ValuesFrame(target.elements, values);
  (end++)->coded = target.coded;
  end = std::copy(more.begin(), more.end(), end);
  LEEWAY_RETURN_IF_ERROR(TakeEach(in, {frames.begin(), end}));
  if (target.kind != TableKind::kRagged) return absl::OkStatus();
  return CheckWidths(in.payload[1], target.elements);
}

}  // namespace leeway::proto::decode
