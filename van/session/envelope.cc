#include "van/session/envelope.h"

#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/messages/limits.h"
#include "runtime/base/status_macros.h"
#include "van/little_endian.h"

namespace leeway::van {
namespace {

constexpr std::size_t kAlignment = 8;
constexpr std::size_t kEntryBytes = 8;  // before the sizes of the frames
// Larger messages travel alone: they gain little from an envelope, which costs one more copy.
constexpr std::size_t kMessageBytesMax = 4096;

std::size_t Padded(std::size_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

std::size_t EntrySize(const Message& message) {
  std::size_t size =
      kEntryBytes + Padded(4 * message.payload.size()) + Padded(message.header.size());
  for (const Buffer& frame : message.payload) size += Padded(frame.size());
  return size;
}

std::byte* PutBytes(const Buffer& bytes, std::byte* out) {
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return out + Padded(bytes.size());
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("malformed envelope: ", what));
}

// Decodes messages from the front of a body.
class Reader {
 public:
  Reader(const Buffer& body, const Limits& limits) : body_(body), limits_(limits) {}

  bool done() const { return at_ == body_.size(); }

  absl::Status Next(Message* message) {
    const std::byte* entry = body_.data() + at_;
    if (!Skip(kEntryBytes)) return Wrong("it ends within a message");
    const std::size_t header = Get<std::uint32_t>(entry);
    const std::size_t frames = Get<std::uint16_t>(entry + 4);
    if (Get<std::uint16_t>(entry + 6) != 0) return Wrong("two bytes that must be zero are not");
    if (frames > limits_.payload_frames_max) {
      return Wrong(absl::StrCat("a message of ", frames, " payload frames; at most ",
                                limits_.payload_frames_max));
    }
    const std::byte* sizes = body_.data() + at_;
    if (!Skip(4 * frames) || !TakeBytes(header, &message->header)) {
      return Wrong("it ends within a message");
    }
    for (std::size_t i = 0; i < frames; ++i) {
      const std::size_t size = Get<std::uint32_t>(sizes + 4 * i);
      if (size > limits_.message_bytes_max) {
        return Wrong(absl::StrCat("a payload of ", size, " bytes; LEEWAY_MESSAGE_BYTES_MAX allows ",
                                  limits_.message_bytes_max));
      }
      if (!TakeBytes(size, &message->payload.emplace_back())) {
        return Wrong("it ends within a message");
      }
    }
    return absl::OkStatus();
  }

 private:
  // Sizes have at most 32 bits, so the sum does not overflow.
  bool Skip(std::size_t bytes) {
    if (Padded(bytes) > body_.size() - at_) return false;
    at_ += Padded(bytes);
    return true;
  }
  bool TakeBytes(std::size_t bytes, Buffer* to) {
    const std::size_t from = at_;
    if (!Skip(bytes)) return false;
    *to = body_.Part(from, bytes);
    return true;
  }

  const Buffer& body_;
  const Limits& limits_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t Envelope::SizeWith(const Message& message) const {
  const std::size_t size = EntrySize(message);
  return size > kMessageBytesMax ? kNever : body_.size() + size;
}

void Envelope::Add(const Message& message) {
  const std::size_t begin = body_.size();
  body_.resize(begin + EntrySize(message));
  std::byte* out = body_.data() + begin;
  Put(static_cast<std::uint32_t>(message.header.size()), out);
  Put(static_cast<std::uint16_t>(message.payload.size()), out + 4);
  out += kEntryBytes;
  for (std::size_t i = 0; i < message.payload.size(); ++i) {
    Put(static_cast<std::uint32_t>(message.payload[i].size()), out + 4 * i);
  }
  out = PutBytes(message.header, out + Padded(4 * message.payload.size()));
  for (const Buffer& frame : message.payload) out = PutBytes(frame, out);
  ++messages_;
}

bool Envelope::full() const {
  return messages_ >= proto::kEnvelopeMessagesMax ||
         body_.size() + kMessageBytesMax > proto::kEnvelopeBytesMax;
}

Buffer Envelope::Take() {
  const Buffer body = Buffer::CopyOf(body_.data(), body_.size());
  body_.clear();
  messages_ = 0;
  return body;
}

absl::StatusOr<std::vector<Message>> OpenEnvelope(std::span<const std::byte> body,
                                                  const Limits& limits) {
  if (body.empty() || body.size() > proto::kEnvelopeBytesMax) {
    return Wrong(
        absl::StrCat("it has ", body.size(), " bytes, may have 1 to ", proto::kEnvelopeBytesMax));
  }
  const Buffer copy = Buffer::CopyOf(body.data(), body.size());
  std::vector<Message> messages;
  messages.reserve(proto::kEnvelopeMessagesMax);
  Reader reader(copy, limits);
  while (!reader.done()) {
    if (messages.size() == proto::kEnvelopeMessagesMax) {
      return Wrong(absl::StrCat("it has more than ", proto::kEnvelopeMessagesMax, " messages"));
    }
    LEEWAY_RETURN_IF_ERROR(reader.Next(&messages.emplace_back()));
  }
  return messages;
}

}  // namespace leeway::van
