// randomk: elements at k random places, which both sides compute from one seed, and zero elsewhere.
//
//   k = max(1, ceil(RATIO × n)) of the n elements of a message, or of each row where rows are
//   separate. (Stich, Cordonnier and Jaggi 2018, arXiv 1809.07599, definition 2.1: rand_k; scaled
//   by n / k it is unbiased: Wangni and others 2018, arXiv 1710.09854, for equal probabilities.)
//   The places: [0, n) is cut into k stretches, number i from floor(i n / k) to
//   floor((i + 1) n / k), one place is drawn in each, and all are moved on by one offset drawn from
//   [0, n), modulo n. So there are exactly k different ones, and each place is taken with
//   probability k / n, whatever the lengths of the stretches. A draw from [0, m) is floor(r m /
//   2^64) with the random number r = RandomAt(seed, row, i) of runtime/base/random.h, i = k for the
//   offset.
//
// Options: RATIO (default 0.01, above 0 and at most 1); scale=1 sends n / k times the value, so
// that the expectation of the decoded values is the encoded values (default 0: the value itself, as
// error feedback needs it). Products are clamped to the largest finite number.
// Message: u64 seed, from that of the terms and their step; f64 RATIO; the values as f32, row by
// row, in the order of the stretches. Little-endian. A message of no elements has no bytes.
// NaN and infinity are refused anywhere in the message, not only at the drawn places: whether a
// push is refused must not depend on the seed. It costs a pass over the values.
// Limits: 2^32 − 1 elements in a message. DecodeAdd leaves a −0 where nothing was sent.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "compress/sparse/largest.h"
#include "runtime/base/random.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kRandomKName = "randomk";
constexpr std::size_t kRandomKHeaderBytes = 16;

std::uint64_t Draw(std::uint64_t seed, std::uint64_t row, std::uint64_t i, std::uint64_t below) {
  const std::uint64_t random = runtime::RandomAt(seed, row, i);
  return ((random >> 32) * below + ((random & 0xffffffffu) * below >> 32)) >> 32;  // below < 2^32
}

// Calls each(place) for the k places of a row of `size` elements, in the order of the stretches.
template <class Each>
void ForEachDrawnPlace(std::uint64_t seed, std::uint64_t row, std::uint64_t size, std::uint64_t k,
                       const Each& each) {
  const std::uint64_t offset = Draw(seed, row, k, size), length = size / k, rest = size % k;
  // The stretch that begins at floor(i n / k), and i n modulo k: no division in the loop.
  std::uint64_t begin = 0, fraction = 0;
  for (std::uint64_t i = 0; i < k; ++i) {
    fraction += rest;
    const bool longer = fraction >= k;
    if (longer) fraction -= k;
    const std::uint64_t stretch = length + (longer ? 1 : 0);
    const std::uint64_t place = offset + begin + Draw(seed, row, i, stretch);
    each(place < size ? place : place - size);
    begin += stretch;
  }
}

class RandomK final : public FloatCodec {
 public:
  RandomK(double ratio, bool scale) : ratio_(ratio), scale_(scale) {}

  // Scaled by n/k it is unbiased, and the dropped part is longer than the input.
  bool contracts() const override { return !scale_; }

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return shape.elements == 0 ? 0 : kRandomKHeaderBytes + 4 * CountOfRatio(ratio_, shape);
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    return EncodeEach(static_cast<const float*>(values), terms, out, [](std::uint64_t, float) {});
  }
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    return EncodeEach(carried, terms, out,
                      [carried](std::uint64_t place, float sent) { carried[place] -= sent; });
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return Read(encoded, shape).status();
  }
  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    float* const to = static_cast<float*>(values);
    std::fill_n(to, shape.elements, 0.0f);
    ForEachValue(message, shape, [to](std::uint64_t place, float value) { to[place] = value; });
    return absl::OkStatus();
  }
  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    LEEWAY_ASSIGN_OR_RETURN(const Message message, Read(encoded, shape));
    ForEachValue(message, shape,
                 [sum, factor](std::uint64_t place, float value) { sum[place] += factor * value; });
    return absl::OkStatus();
  }

 private:
  struct Message {
    std::uint64_t seed = 0;
    double ratio = 0;
    const std::byte* values = nullptr;
  };

  static absl::StatusOr<Message> Read(std::span<const std::byte> encoded, const CodecShape& shape) {
    Message message;
    if (shape.elements == 0) {
      if (encoded.empty()) return message;
      return Malformed(kRandomKName, encoded.size(), " bytes for no elements");
    }
    if (shape.elements > kMaxSparseElements) {
      return Malformed(kRandomKName, shape.elements, " elements");
    }
    ByteReader reader(encoded);
    if (!reader.Take(&message.seed) || !reader.Take(&message.ratio)) {
      return Malformed(kRandomKName, "only ", encoded.size(), " bytes");
    }
    if (!(message.ratio > 0 && message.ratio <= 1)) {
      return Malformed(kRandomKName, "ratio ", message.ratio);
    }
    const std::uint64_t sent = CountOfRatio(message.ratio, shape);
    if (reader.left() != 4 * sent) {
      return Malformed(kRandomKName, reader.left(), " bytes of values instead of ", 4 * sent);
    }
    message.values = reader.Skip(4 * sent);
    std::uint32_t largest = 0;
    for (std::uint64_t i = 0; i < sent; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, message.values + 4 * i, sizeof(bits));
      largest = std::max(largest, bits & 0x7fffffffu);
    }
    if (largest >= kInfiniteMagnitude) return Malformed(kRandomKName, "a value is not finite");
    return message;
  }

  template <class Each>
  static void ForEachValue(const Message& message, const CodecShape& shape, const Each& each) {
    const std::byte* from = message.values;
    const std::uint64_t group = GroupElements(shape, 0);
    for (std::uint64_t begin = 0, row = 0; begin < shape.elements; begin += group, ++row) {
      const std::uint64_t size = std::min(group, shape.elements - begin);
      ForEachDrawnPlace(message.seed, row, size, CountOfRatio(message.ratio, size),
                        [&](std::uint64_t place) {
                          float value;
                          std::memcpy(&value, from, sizeof(value));
                          from += sizeof(value);
                          each(begin + place, value);
                        });
    }
  }

  static float Bounded(double value) {
    constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
    return static_cast<float>(std::clamp(value, -kLargest, kLargest));
  }

  template <class Each>
  absl::StatusOr<std::size_t> EncodeEach(const float* values, const EncodeTerms& terms,
                                         std::span<std::byte> out, const Each& each) const {
    const CodecShape& shape = terms.shape;
    if (shape.elements == 0) return 0;
    if (shape.elements > kMaxSparseElements) {
      return absl::InvalidArgumentError(absl::StrCat("codec randomk: ", shape.elements,
                                                     " elements in one message, may be up to ",
                                                     kMaxSparseElements));
    }
    if (!std::isfinite(ChosenKernels().reduce.max_abs(values, shape.elements))) {
      return NotFinite(kRandomKName);
    }
    ByteWriter writer(out);
    // If a caller's seed stays the same, each step still has other places.
    const std::uint64_t seed = runtime::RandomAt(terms.seed, terms.step, 0);
    writer.Put(seed);
    writer.Put(ratio_);
    const std::uint64_t group = GroupElements(shape, 0);
    for (std::uint64_t begin = 0, row = 0; begin < shape.elements; begin += group, ++row) {
      const std::uint64_t size = std::min(group, shape.elements - begin);
      const std::uint64_t k = CountOfRatio(ratio_, size);
      const double factor = scale_ ? static_cast<double>(size) / static_cast<double>(k) : 1;
      ForEachDrawnPlace(seed, row, size, k, [&](std::uint64_t place) {
        const float sent = Bounded(factor * static_cast<double>(values[begin + place]));
        writer.Put(sent);
        each(begin + place, sent);
      });
    }
    return writer.size();
  }

  double ratio_;
  bool scale_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeRandomK(const CodecOptions& options) {
  double ratio = 0.01, scale = 0;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(
      kRandomKName, options,
      {{.name = "", .what = "ratio", .value = &ratio, .low = 0, .high = 1, .low_open = true},
       {.name = "scale", .value = &scale, .low = 0, .high = 1, .whole = true}}));
  return std::make_unique<RandomK>(ratio, scale != 0);
}

}  // namespace

CodecList RandomKCodecs() { return {{"randomk", MakeRandomK}}; }

}  // namespace leeway::compress
