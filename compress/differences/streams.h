// What the message of a difference is made of: numbers, and streams of bytes.
//
// A number is LEB128, the lower 7 bits first, in at most 10 bytes. A stream of n bytes, n known to
// the reader, is a number s and s bytes: for s = n they are the stream itself; for 0 < s < n one
// Zstandard frame that declares n bytes; for s = 0 there are none, and the stream is all zeros.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_STREAMS_H_
#define LEEWAY_COMPRESS_DIFFERENCES_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compress/common/byte_io.h"

namespace leeway::compress {

inline constexpr absl::string_view kDifference = "difference";  // as errors name the message

void PutNumber(std::uint64_t number, std::vector<std::byte>* message);
// False: no number, or one above 2^64 − 1.
[[nodiscard]] bool TakeNumber(ByteReader* reader, std::uint64_t* number);

enum class Repeats {
  kStretches,  // the stream repeats itself in stretches
  kBytes,      // some bytes are more frequent than others, in no order
};
void PutStream(std::span<const std::byte> stream, Repeats repeats, std::vector<std::byte>* message);

// The bytes of a stream, in the message or in memory of their own.
struct Stream {
  const std::byte* bytes;
  std::unique_ptr<std::byte[]> unpacked;
};
// INVALID_ARGUMENT: no stream of `size` bytes.
absl::StatusOr<Stream> TakeStream(ByteReader* reader, std::size_t size);

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_STREAMS_H_
