#include "node/call_frames.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"

namespace leeway::node {
namespace {

static_assert(kCallFramesMax == proto::kCallFramesMax);

class FrameOwner final : public runtime::BufferOwner {
 public:
  explicit FrameOwner(std::shared_ptr<const void> owner) : owner_(std::move(owner)) {}

 private:
  const std::shared_ptr<const void> owner_;
};

}  // namespace

absl::Status CheckFrames(const CallFrames& frames) {
  if (!frames.empty() && frames.size() <= kCallFramesMax) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a call has 1 to ", kCallFramesMax, " frames; this has ", frames.size()));
}

FrameBuffers BuffersOf(CallFrames frames) {
  FrameBuffers buffers;
  for (CallFrame& frame : frames) {
    runtime::BufferOwner* const owner =
        frame.owner == nullptr ? nullptr : new FrameOwner(std::move(frame.owner));
    buffers.emplace_back(frame.bytes.data(), frame.bytes.size(), owner);
  }
  return buffers;
}

CallFrames FramesOf(std::span<const runtime::Buffer> buffers) {
  CallFrames frames;
  frames.reserve(buffers.size());
  for (const runtime::Buffer& buffer : buffers) {
    frames.push_back({.bytes = buffer.bytes(),
                      .owner = std::make_shared<const runtime::Buffer>(buffer),
                      .imported = buffer.may_change()});
  }
  return frames;
}

}  // namespace leeway::node
