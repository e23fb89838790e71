// Arrays of keys, values and lens as the frames of a call behind its CallHead, and back.
#ifndef LEEWAY_COMPAT_CORE_FRAMES_H_
#define LEEWAY_COMPAT_CORE_FRAMES_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "compat/core/array_pool.h"
#include "compat/core/call_format.h"
#include "compat/ps/internal/transfer.h"
#include "leeway/call.h"

namespace leeway::compat {

inline std::string TextOf(const CallFrame& frame) {
  return std::string(reinterpret_cast<const char*>(frame.bytes.data()), frame.bytes.size());
}

// The bytes are not copied; they live as long as their owner.
inline CallFrame FrameOf(::ps::internal::Bytes bytes) {
  const auto* data = static_cast<const std::byte*>(bytes.data);
  return {{data, bytes.size}, std::move(bytes.owner), false};
}
inline CallFrames FramesOf(const CallHead& head, ::ps::internal::KVArrays arrays) {
  CallFrames frames = {FrameOf(head), FrameOf(std::move(arrays.keys)),
                       FrameOf(std::move(arrays.vals))};
  if (arrays.has_lens) frames.push_back(FrameOf(std::move(arrays.lens)));
  return frames;
}

// Bytes that a program may keep, and change.
inline ::ps::internal::Bytes BytesOf(const CallFrame& frame) {
  ::ps::internal::Bytes bytes;
  bytes.size = frame.bytes.size();
  if (frame.imported && bytes.size > 0) {
    static const auto& pool = *new std::shared_ptr<ArrayPool>(std::make_shared<ArrayPool>());
    const std::shared_ptr<std::byte> copy = pool->Take(bytes.size);
    std::memcpy(copy.get(), frame.bytes.data(), bytes.size);
    bytes.data = copy.get();
    bytes.owner = copy;
  } else {
    bytes.data = const_cast<std::byte*>(frame.bytes.data());
    bytes.owner = std::const_pointer_cast<void>(frame.owner);
  }
  return bytes;
}
inline bool HasArrays(const CallHead& head, const CallFrames& frames) {
  return frames.size() == (head.has_lens != 0 ? 4u : 3u);
}
inline ::ps::internal::KVArrays ArraysOf(const CallHead& head, const CallFrames& frames) {
  ::ps::internal::KVArrays arrays;
  arrays.keys = BytesOf(frames[1]);
  arrays.vals = BytesOf(frames[2]);
  arrays.has_lens = head.has_lens != 0;
  if (arrays.has_lens) arrays.lens = BytesOf(frames[3]);
  return arrays;
}

}  // namespace leeway::compat

#endif  // LEEWAY_COMPAT_CORE_FRAMES_H_
