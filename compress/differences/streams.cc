#include "compress/differences/streams.h"

#include <algorithm>

#include "compress/common/float_codec.h"
#include "compress/common/zstd_frames.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr int kNumberBits = 7, kNumberBitsMax = 64;
constexpr int kLevel = 1;
// A frame has to save this part of a stream, for the time that it takes to unpack.
constexpr std::size_t kSavedPart = 32;

}  // namespace

void PutNumber(std::uint64_t number, std::vector<std::byte>* message) {
  for (; number >> kNumberBits != 0; number >>= kNumberBits) {
    message->push_back(static_cast<std::byte>(number | 1u << kNumberBits));
  }
  message->push_back(static_cast<std::byte>(number));
}

bool TakeNumber(ByteReader* reader, std::uint64_t* number) {
  *number = 0;
  for (int shift = 0; shift < kNumberBitsMax; shift += kNumberBits) {
    std::uint8_t byte = 0;
    if (!reader->Take(&byte)) return false;
    const std::uint64_t bits = byte & ((1u << kNumberBits) - 1);
    if (bits << shift >> shift != bits) return false;
    *number |= bits << shift;
    if (bits == byte) return true;
  }
  return false;
}

void PutStream(std::span<const std::byte> stream, Repeats repeats,
               std::vector<std::byte>* message) {
  if (std::all_of(stream.begin(), stream.end(), [](std::byte b) { return b == std::byte{0}; })) {
    PutNumber(0, message);
    return;
  }
  const auto frame = std::make_unique_for_overwrite<std::byte[]>(stream.size());
  const std::span<std::byte> room(frame.get(), stream.size() - stream.size() / kSavedPart - 1);
  const std::size_t bytes = repeats == Repeats::kBytes ? WriteHuffmanFrame(stream, room)
                                                       : WriteZstdFrame(stream, kLevel, room);
  const std::span<const std::byte> shorter =
      bytes > 0 ? std::span<const std::byte>(frame.get(), bytes) : stream;
  PutNumber(shorter.size(), message);
  message->insert(message->end(), shorter.begin(), shorter.end());
}

absl::StatusOr<Stream> TakeStream(ByteReader* reader, std::size_t size) {
  std::uint64_t bytes = 0;
  if (!TakeNumber(reader, &bytes) || bytes > reader->left()) {
    return Malformed(kDifference, "too few bytes");
  }
  if (bytes > size) return Malformed(kDifference, bytes, " bytes for ", size, " of them");
  const std::byte* const from = reader->Skip(bytes);
  if (bytes == size) return Stream{.bytes = from, .unpacked = nullptr};
  auto unpacked = std::make_unique_for_overwrite<std::byte[]>(size);
  if (bytes == 0) {
    std::fill_n(unpacked.get(), size, std::byte{0});
  } else {
    LEEWAY_RETURN_IF_ERROR(ReadZstdFrame(kDifference, {from, bytes}, {unpacked.get(), size}));
  }
  const std::byte* const at = unpacked.get();
  return Stream{.bytes = at, .unpacked = std::move(unpacked)};
}

}  // namespace leeway::compress
