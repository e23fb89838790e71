// Places are which elements of a block have changed, as the gaps between them or as a bitmap.
//
// A gap is the number of unchanged elements in front of one that changed: a byte, up to 252, or the
// byte 253, 254 or 255 and the gap in 2, 4 or 8 bytes.
#ifndef LEEWAY_COMPRESS_DIFFERENCES_PLACES_H_
#define LEEWAY_COMPRESS_DIFFERENCES_PLACES_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leeway::compress {

inline constexpr std::size_t kGapBytesMax = 1 + sizeof(std::uint64_t);
inline constexpr std::uint8_t kTwoByteGap = 253, kFourByteGap = 254, kEightByteGap = 255;

// Writes a gap to `to`, which has room for kGapBytesMax, and returns its bytes.
std::size_t WriteLongGap(std::uint64_t gap, std::byte* to);
inline std::size_t WriteGap(std::uint64_t gap, std::byte* to) {
  if (gap >= kTwoByteGap) return WriteLongGap(gap, to);
  *to = static_cast<std::byte>(gap);
  return 1;
}

// Takes the gap that begins with the byte `first` from the front of the bytes behind it. False:
// they are too few.
[[nodiscard]] bool TakeLongGap(std::uint8_t first, std::span<const std::byte>* bytes,
                               std::uint64_t* gap);

// Calls use(place) for each of `count` places, ascending. False: the bytes are not exactly so many
// gaps, or a place is not below `elements`; use() may have been called until then.
template <class Use>
[[nodiscard]] bool ForEachGap(std::span<const std::byte> bytes, std::uint64_t count,
                              std::uint64_t elements, Use use) {
  std::uint64_t next = 0;  // the first place that may follow
  for (std::uint64_t i = 0; i < count; ++i) {
    if (bytes.empty()) return false;
    std::uint64_t gap = static_cast<std::uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    if (gap >= kTwoByteGap && !TakeLongGap(static_cast<std::uint8_t>(gap), &bytes, &gap)) {
      return false;
    }
    if (gap >= elements - next) return false;
    use(next + gap);
    next += gap + 1;
  }
  return bytes.empty();
}

// A bitmap has a bit for each element, bit i mod 8 of byte i / 8, and zeros behind the last one.
inline constexpr std::uint64_t kWordBits = 64;
inline std::uint64_t BitmapBytes(std::uint64_t elements) {
  return elements / 8 + (elements % 8 != 0 ? 1 : 0);
}
inline std::uint64_t BitmapWords(std::uint64_t elements) {
  return elements / kWordBits + (elements % kWordBits != 0 ? 1 : 0);
}

// Word i of a bitmap, with zeros behind its end.
inline std::uint64_t BitmapWord(std::span<const std::byte> bitmap, std::size_t i) {
  std::uint64_t word = 0;
  const std::size_t at = i * sizeof(word);
  std::memcpy(&word, bitmap.data() + at,
              bitmap.size() - at < sizeof(word) ? bitmap.size() - at : sizeof(word));
  return word;
}

// Calls use(place) for each bit that is set in a word that begins at place `first`.
template <class Use>
void ForEachBit(std::uint64_t word, std::uint64_t first, Use use) {
  for (; word != 0; word &= word - 1) {
    use(first + static_cast<std::uint64_t>(std::countr_zero(word)));
  }
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_DIFFERENCES_PLACES_H_
