#include "van/prefix.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "van/little_endian.h"

namespace leeway::van {

void PutPrefix(const Prefix& prefix, std::byte* out) {
  Put(kPrefixMagic, out);
  Put(static_cast<std::uint8_t>(prefix.kind), out + 4);
  Put(prefix.flags, out + 5);
  Put(prefix.frames, out + 6);
  Put(prefix.sent, out + 8);
  Put(prefix.consumed, out + 16);
  Put(prefix.receive_token, out + 24);
}

absl::StatusOr<Prefix> GetPrefix(std::span<const std::byte> frame) {
  if (frame.size() < kPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a first frame of ", frame.size(), " bytes; at least ", kPrefixBytes));
  }
  if (Get<std::uint32_t>(frame.data()) != kPrefixMagic) {
    return absl::InvalidArgumentError("a first frame that is not ours (wrong magic number)");
  }
  const auto kind = Get<std::uint8_t>(frame.data() + 4);
  if (kind < static_cast<std::uint8_t>(Kind::kData) ||
      kind > static_cast<std::uint8_t>(Kind::kEnvelope)) {
    return absl::InvalidArgumentError(absl::StrCat("a message of unknown kind ", kind));
  }
  Prefix prefix;
  prefix.kind = static_cast<Kind>(kind);
  prefix.flags = Get<std::uint8_t>(frame.data() + 5);
  prefix.frames = Get<std::uint16_t>(frame.data() + 6);
  prefix.sent = Get<std::uint64_t>(frame.data() + 8);
  prefix.consumed = Get<std::uint64_t>(frame.data() + 16);
  prefix.receive_token = Get<std::uint64_t>(frame.data() + 24);
  if (prefix.kind == Kind::kCredit && frame.size() != kPrefixBytes) {
    return absl::InvalidArgumentError("a credit with a header");
  }
  return prefix;
}

}  // namespace leeway::van
