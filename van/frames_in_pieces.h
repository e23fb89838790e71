// FramesInPieces puts together the frames of a message whose bytes come in pieces, in order.
//
// A frame gets its memory when the first of its bytes is there: a peer that announces many large
// frames, and sends none, makes the receiver take nothing. One thread.
#ifndef LEEWAY_VAN_FRAMES_IN_PIECES_H_
#define LEEWAY_VAN_FRAMES_IN_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>

#include "absl/status/status.h"
#include "van/transport.h"

namespace leeway::van {

class FramesInPieces {
 public:
  using Payload = decltype(Arrival::payload);

  // The frame that follows those added so far. Its bytes go to memory that there is already, to a
  // new frame at the end of the payload, or nowhere.
  void AddInto(std::byte* to, std::uint64_t bytes) { frames_.push_back({.to = to, .left = bytes}); }
  void AddTo(Payload* payload, std::uint64_t bytes);
  void AddDiscarded(std::uint64_t bytes) { frames_.push_back({.left = bytes}); }

  // True if all frames are complete.
  bool empty() const { return frames_.empty(); }
  // How many bytes of the first incomplete frame are missing. Not empty.
  std::uint64_t missing() const { return frames_.front().left; }
  // Its next piece, of at most missing() bytes. RESOURCE_EXHAUSTED: there is no memory for the
  // frame.
  absl::Status Take(const std::byte* from, std::uint64_t bytes, Payload* payload);

 private:
  static constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();
  struct Frame {
    std::byte* to = nullptr;
    std::uint64_t left = 0;
    std::size_t place = kNoPlace;  // in the payload, until it has its memory
  };

  static absl::Status Allocate(Frame* frame, Payload* payload);

  std::deque<Frame> frames_;
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_FRAMES_IN_PIECES_H_
