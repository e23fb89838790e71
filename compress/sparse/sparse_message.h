// The message of codecs that send some of the elements, their places and values; and SparseCodec,
// the base class of these codecs.
//
//   byte 0          form, and 16 where the values are binary16 instead of binary32
//   form 0, dense:  every element's value, 0 for elements that are not sent
//   form 1, bitmap: ceil(n / 8) bytes, bit i mod 8 of byte i / 8 says whether element i is sent;
//                   bits beyond n are 0; then the values of those, in order
//                   bits beyond n are 0; then the values of those, in order
//   form 2, places: u32 k, the number of sent elements, at least 1; their places as an Elias–Fano
//                   sequence (Elias 1974, Fano 1971); then the k values, in order
//   form 3, none:   nothing
// The writer takes the shortest form, or a bitmap if it is longer than the places by no more than a
// sixteenth of the message, since it is decoded in vectors. A message of no elements has no bytes.
// n is the number of elements of the message; separate rows are numbered on through all of them.
// Numbers are little-endian.
//
// An Elias–Fano sequence of k ascending places below n, with b = max(0, floor(log2(n / k))): their
// low b bits, packed from the lowest bit of the first byte on, in ceil(k b / 8) bytes; then
// k + ((n - 1) >> b) bits, in which bit (place >> b) + i is set for the place number i. The unused
// bits in the last byte of either are 0. A place takes b + 2 to b + 2.6 bits, wherever the places
// lie, where deltas coded in whole bytes take 10.2 bits at 1 %, and more where places lie apart;
// the length depends on k and n alone, and to decode a place takes a few operations.
#ifndef LEEWAY_COMPRESS_SPARSE_SPARSE_MESSAGE_H_
#define LEEWAY_COMPRESS_SPARSE_SPARSE_MESSAGE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compress/common/float_codec.h"
#include "leeway/codec.h"
#include "leeway/dtype.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {

enum class SparseValues : std::uint8_t { kFloat32 = 0, kFloat16 = 16 };
enum class SparseForm : std::uint8_t { kDense = 0, kBitmap = 1, kPlaces = 2, kNone = 3 };

// Takes the option values=fp32 or values=fp16 out of the options, if it is there.
absl::Status TakeSparseValues(absl::string_view codec, CodecOptions* options, SparseValues* values);

constexpr std::size_t SparseValueBytes(SparseValues values) {
  return values == SparseValues::kFloat32 ? 4 : 2;
}

// The binary16 value that is sent; finite values that would become infinite become ±65504.
Float16 HalfOf(float value);
float SentValue(float value, SparseValues values);

// The bytes of a message that sends `sent` of `elements`; and the maximum over all numbers sent.
std::size_t SparseMessageBytes(std::uint64_t elements, std::uint64_t sent, SparseValues values);
std::size_t SparseMessageBytesMax(std::uint64_t elements, SparseValues values);

// Writes values[place] for each of the places, ascending, all below `elements`; returns the number
// of bytes. The values there are finite.
std::size_t WriteSparseMessage(std::span<const std::uint32_t> places, const float* values,
                               std::uint64_t elements, SparseValues form, std::span<std::byte> out);

// Subtracts from `carried`, at the places, the values that WriteSparseMessage has sent.
void SubtractSent(std::span<const std::uint32_t> places, SparseValues values, float* carried);

// A message taken apart, whose lengths are consistent. Its places and values are checked while they
// are read.
struct SparseMessage {
  SparseForm form = SparseForm::kNone;
  SparseValues format = SparseValues::kFloat32;
  std::uint64_t elements = 0;
  std::uint64_t sent = 0;             // values that the message has
  const std::byte* low = nullptr;     // of the places
  const std::byte* high = nullptr;    // of the places, or the bitmap
  const std::byte* values = nullptr;  // at any alignment
};
absl::StatusOr<SparseMessage> ReadSparseMessage(absl::string_view codec,
                                                std::span<const std::byte> encoded,
                                                std::uint64_t elements);

namespace sparse_internal {

// floor(log2(elements / sent)).
inline int LowBits(std::uint64_t elements, std::uint64_t sent) {
  return std::bit_width(elements / sent) - 1;
}

// Eight bytes of `bytes` from offset `at`, or as many as are left.
inline std::uint64_t WordOfBits(const std::byte* bits, std::size_t bytes, std::size_t at) {
  std::uint64_t word = 0;
  if (bytes - at >= sizeof(word)) {
    std::memcpy(&word, bits + at, sizeof(word));
  } else if (bytes > at) {
    std::memcpy(&word, bits + at, bytes - at);
  }
  return word;
}

// Reads values one after the other, and records whether all were finite.
template <SparseValues kFormat>
class ValueReader;

template <>
class ValueReader<SparseValues::kFloat32> {
 public:
  explicit ValueReader(const std::byte* values) : values_(values) {}
  float At(std::uint64_t i) {
    float value;
    std::memcpy(&value, values_ + 4 * i, sizeof(value));
    largest_ = std::max(largest_, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
    return value;
  }
  bool all_finite() const { return largest_ < 0x7f800000u; }

 private:
  const std::byte* values_;
  std::uint32_t largest_ = 0;
};

template <>
class ValueReader<SparseValues::kFloat16> {
 public:
  explicit ValueReader(const std::byte* values) : values_(values) {}
  float At(std::uint64_t i) {
    std::uint16_t half;
    std::memcpy(&half, values_ + 2 * i, sizeof(half));
    const std::uint32_t magnitude = half & 0x7fffu;
    largest_ = std::max(largest_, magnitude);
    // Exponents differ by 112. The product is exact, also where the half is subnormal.
    const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | ((half & 0x8000u) << 16));
  }
  bool all_finite() const { return largest_ < 0x7c00u; }

 private:
  const std::byte* values_;
  std::uint32_t largest_ = 0;
};

template <SparseValues kFormat, class Each>
bool ForEach(const SparseMessage& message, const float* touched, const Each& each) {
  const std::uint64_t elements = message.elements, sent = message.sent;
  ValueReader<kFormat> values(message.values);
  switch (message.form) {
    case SparseForm::kNone:
      break;
    case SparseForm::kDense:
      for (std::uint64_t i = 0; i < elements; ++i) each(i, values.At(i));
      break;
    case SparseForm::kBitmap: {
      const std::size_t bytes = (elements + 7) / 8;
      std::uint64_t i = 0;
      for (std::size_t at = 0; at < bytes; at += 8) {
        for (std::uint64_t word = WordOfBits(message.high, bytes, at); word != 0;
             word &= word - 1, ++i) {
          each(at * 8 + static_cast<unsigned>(std::countr_zero(word)), values.At(i));
        }
      }
      break;
    }
    case SparseForm::kPlaces: {
      const auto low_bits = static_cast<unsigned>(LowBits(elements, sent));
      const std::uint64_t low_mask = (1ull << low_bits) - 1;
      const std::size_t low_bytes = (sent * low_bits + 7) / 8;
      const std::size_t high_bytes = (sent + ((elements - 1) >> low_bits) + 7) / 8;
      // Reads a stretch of places ahead, so that their memory is in the cache when it is needed.
      constexpr std::size_t kAhead = 64;
      std::uint32_t places[kAhead];
      std::size_t ahead = 0;
      std::uint64_t i = 0, done = 0, next = 0;
      const auto finish = [&] {
        for (std::size_t j = 0; j < ahead; ++j) each(places[j], values.At(done + j));
        done += ahead;
        ahead = 0;
      };
      for (std::size_t at = 0; at < high_bytes; at += 8) {
        for (std::uint64_t word = WordOfBits(message.high, high_bytes, at); word != 0;
             word &= word - 1, ++i) {
          if (i == sent) return false;
          const std::uint64_t high = at * 8 + static_cast<unsigned>(std::countr_zero(word)) - i;
          const std::uint64_t bit = i * low_bits;
          const std::uint64_t low = WordOfBits(message.low, low_bytes, bit / 8) >> bit % 8;
          const std::uint64_t place = (high << low_bits) | (low & low_mask);
          if (place < next || place >= elements) return false;
          next = place + 1;
          if (touched != nullptr) __builtin_prefetch(touched + place, 1);
          places[ahead] = static_cast<std::uint32_t>(place);
          if (++ahead == kAhead) finish();
        }
      }
      finish();
      if (i != sent) return false;
      const std::uint64_t bits = sent * low_bits;
      if (bits % 8 != 0 && std::to_integer<unsigned>(message.low[bits / 8]) >> bits % 8 != 0) {
        return false;
      }
      break;
    }
  }
  return values.all_finite();
}

}  // namespace sparse_internal

// Calls each(place, value) for all sent elements, in ascending order, place < elements. False: the
// message is malformed, and calls may be missing or their values not finite. `touched`, [elements],
// is the memory that `each` writes at these places; null: none.
template <class Each>
[[nodiscard]] bool ForEachSent(const SparseMessage& message, const float* touched,
                               const Each& each) {
  return message.format == SparseValues::kFloat32
             ? sparse_internal::ForEach<SparseValues::kFloat32>(message, touched, each)
             : sparse_internal::ForEach<SparseValues::kFloat16>(message, touched, each);
}

// A codec with such messages. DecodeAdd leaves a −0 in `sum` where no element was sent.
class SparseCodec : public FloatCodec {
 public:
  explicit SparseCodec(absl::string_view name) : name_(name) {}
  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override;
  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override;
  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override;

 protected:
  absl::string_view name() const { return name_; }
  // INVALID_ARGUMENT: there are more elements than places can number.
  absl::Status CheckElements(const CodecShape& shape) const;

 private:
  absl::string_view name_;  // of static storage
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_SPARSE_SPARSE_MESSAGE_H_
