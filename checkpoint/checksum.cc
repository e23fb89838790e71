#include "checkpoint/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // for a state that is no pointer
#include <xxhash.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway::checkpoint {
namespace {

constexpr absl::string_view kPrefix = "xxh3:";
constexpr std::size_t kDigits = 16;

}  // namespace

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
Checksum::~Checksum() = default;

void Checksum::Add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->xxh3); }

std::uint64_t ChecksumOf(absl::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string ChecksumText(std::uint64_t checksum) {
  return absl::StrCat(kPrefix, absl::Hex(checksum, absl::kZeroPad16));
}

std::optional<std::uint64_t> ParseChecksum(absl::string_view text) {
  std::uint64_t checksum = 0;
  if (!absl::StartsWith(text, kPrefix) || text.size() != kPrefix.size() + kDigits ||
      !absl::SimpleHexAtoi(text.substr(kPrefix.size()), &checksum)) {
    return std::nullopt;
  }
  // One spelling only.
  if (ChecksumText(checksum) != text) return std::nullopt;
  return checksum;
}

}  // namespace leeway::checkpoint
