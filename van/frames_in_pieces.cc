#include "van/frames_in_pieces.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::van {

void FramesInPieces::AddTo(Payload* payload, std::uint64_t bytes) {
  frames_.push_back({.left = bytes, .place = payload->size()});
  payload->emplace_back();
}

absl::Status FramesInPieces::Take(const std::byte* from, std::uint64_t bytes, Payload* payload) {
  Frame& frame = frames_.front();
  if (frame.place != kNoPlace) {
    if (absl::Status status = Allocate(&frame, payload); !status.ok()) return status;
  }
  if (frame.to != nullptr) {
    std::memcpy(frame.to, from, bytes);
    frame.to += bytes;
  }
  frame.left -= bytes;
  if (frame.left == 0) frames_.pop_front();
  return absl::OkStatus();
}

absl::Status FramesInPieces::Allocate(Frame* frame, Payload* payload) {
  Buffer buffer = Buffer::TryAllocate(frame->left, &frame->to);
  if (frame->to == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("there is no memory for a frame of ", frame->left,
                     " bytes; lower LEEWAY_MESSAGE_BYTES_MAX, or LEEWAY_BLOCK_BYTES"));
  }
  (*payload)[std::exchange(frame->place, kNoPlace)] = std::move(buffer);
  return absl::OkStatus();
}

}  // namespace leeway::van
