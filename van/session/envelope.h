// Small messages to one peer that travel together. What they cost is hardly their bytes: it is the
// transport's work for each frame, the wake-up at the other side and the calls to the system.
//
// An envelope is the body of one frame of the van (Kind::kEnvelope), at most
// proto::kEnvelopeBytesMax long: at most proto::kEnvelopeMessagesMax messages, one after the other,
// little-endian, everything padded with zeros to a multiple of 8 so that what has been received at
// an aligned address can be used in place (docs/wire-format.md):
//
//   0   4  bytes of the header
//   4   2  payload frames
//   6   2  zero
//   8   4  bytes of each payload frame, one after the other
//   .      the header, then each payload frame
#ifndef LEEWAY_VAN_SESSION_ENVELOPE_H_
#define LEEWAY_VAN_SESSION_ENVELOPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "van/van.h"

namespace leeway::van {

// What waits to leave in one envelope.
class Envelope {
 public:
  // How long the body would be with `message` in it; kNever where it is to travel by itself.
  static constexpr std::size_t kNever = ~std::size_t{0};
  std::size_t SizeWith(const Message& message) const;
  // A copy of it. SizeWith was not kNever.
  void Add(const Message& message);

  bool empty() const { return messages_ == 0; }
  // No other message fits for sure.
  bool full() const;
  std::size_t size() const { return body_.size(); }
  // The body; empty from here on.
  Buffer Take();

 private:
  std::vector<std::byte> body_;
  std::size_t messages_ = 0;
};

// The messages of a received body, which share one copy of it. INVALID_ARGUMENT for what no
// Envelope would have made: nothing of it is to be believed then.
absl::StatusOr<std::vector<Message>> OpenEnvelope(std::span<const std::byte> body,
                                                  const Limits& limits);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_ENVELOPE_H_
