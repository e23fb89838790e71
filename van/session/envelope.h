// An Envelope is one frame with several small messages to one peer. Sending a small message costs
// little for its bytes and much for the transport's work per frame, the wake-up of the peer and the
// system calls.
//
// An envelope is the body of a frame of kind kEnvelope, at most proto::kEnvelopeBytesMax bytes
// long. It has at most proto::kEnvelopeMessagesMax messages, one after the other, little-endian.
// Each part is padded with zeros to a multiple of 8, so that a body at an aligned address can be
// used in place (docs/wire-format.md):
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

// The messages that wait to leave in one envelope. One thread.
class Envelope {
 public:
  // The length of the body with `message` added, in bytes; kNever: the message has to travel alone.
  static constexpr std::size_t kNever = ~std::size_t{0};
  std::size_t SizeWith(const Message& message) const;
  // Adds a copy of the message. SizeWith must not have been kNever.
  void Add(const Message& message);

  bool empty() const { return messages_ == 0; }
  // True if the envelope may have no room for another message.
  bool full() const;
  std::size_t size() const { return body_.size(); }
  // Returns the body and leaves the envelope empty.
  Buffer Take();

 private:
  std::vector<std::byte> body_;
  std::size_t messages_ = 0;
};

// Decodes a received body; the messages share one copy of it. INVALID_ARGUMENT for a body that
// Envelope would not have made: none of its messages may be used then.
absl::StatusOr<std::vector<Message>> OpenEnvelope(std::span<const std::byte> body,
                                                  const Limits& limits);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SESSION_ENVELOPE_H_
