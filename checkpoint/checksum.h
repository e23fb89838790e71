// The checksum of a checkpoint's files: XXH3, 64 bits. It is as fast as memory, so that it costs
// nothing beside writing to a disk, and its 64 bits are enough for files of any size; a CRC of 32
// would meet itself once in four thousand million changes.
#ifndef LEEWAY_CHECKPOINT_CHECKSUM_H_
#define LEEWAY_CHECKPOINT_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace leeway::checkpoint {

// Of bytes that come piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void Add(std::span<const std::byte> bytes);
  std::uint64_t value() const;  // of all so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::uint64_t ChecksumOf(absl::string_view text);

// "xxh3:0123456789abcdef", and back.
std::string ChecksumText(std::uint64_t checksum);
std::optional<std::uint64_t> ParseChecksum(absl::string_view text);

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_CHECKSUM_H_
