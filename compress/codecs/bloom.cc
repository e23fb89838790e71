// bloom: the elements of the largest magnitudes; their places are sent as a Bloom filter.
//
//   Kostopoulou, Xu, Kalnis and others 2021 (DeepReduce), arXiv 2102.03112, section 4. As with
//   topk, k = max(1, ceil(RATIO × n)) of the n elements of a message, or of each row where rows are
//   topk, k = max(1, ceil(RATIO × n)) of the n elements of a message, or of each row where rows are
//   separate, are put into the filter. About `fpr` of the other places test positive too. Policy:
//   the value of every place that tests positive is sent, so that false positives cost bytes and no
//   accuracy. They cost much unless fpr is well below RATIO: 4 bytes for each of fpr × n.
//   The filter (Bloom 1970) has m = ceil(k b) bits, b = −ln(fpr) / (ln 2)² rounded up to a multiple
//   of 1/256, and h = −log2(fpr) hash functions, rounded to the nearest and at least 1
//   (compress/kernels/sparse_kernels.h); fpr counts as at least 2^-32.
//
// Options: RATIO (default 0.01, above 0 and at most 1); fpr (default 0.01, above 0 and at most
// 0.5). Message: f64 RATIO, u16 256 b, u8 h; then for each group of elements (the message, or one
// row):
//   byte 0: 0: all values of the group follow, f32 each, if that is shorter (all of them count as
//           sent); or 1:
//   ceil(m / 8) bytes of the filter, bit i mod 8 of byte i / 8; bits beyond m are 0
//   f32 values of the places that test positive, in ascending order
//   Each row has a filter of its own, with places that begin at 0: its false positives depend on
//   that row alone. Little-endian. A message of no elements has no bytes.
// NaN and infinity anywhere in the message are refused.
// Limits: 2^32 − 1 elements in a message, 2^32 − 1 bits in a filter. Both sides test every place,
// so that decoding takes longer than topk's. DecodeAdd leaves a −0 where nothing was sent.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "compress/sparse/largest.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kBloomName = "bloom";
constexpr std::size_t kBloomHeaderBytes = 11;
constexpr std::size_t kPlacesAtOnce = 4096;  // places that are tested in one call
constexpr double kLn2 = 0.6931471805599453;
constexpr std::uint64_t kMaxFilterBits = 0xffffffffu;

// The header of a message: the terms of its filters.
struct FilterTerms {
  double ratio = 0;
  std::uint16_t bits_256 = 0;  // for each place, times 256
  std::uint8_t hashes = 0;

  std::uint64_t BitsFor(std::uint64_t places) const { return (places * bits_256 + 255) / 256; }
};

enum GroupForm : std::uint8_t { kAllValues = 0, kFilter = 1 };

class Bloom final : public FloatCodec {
 public:
  Bloom(double ratio, double fpr) {
    const double bits = -std::log(std::max(fpr, 0x1p-32));
    filter_ = {.ratio = ratio,
               .bits_256 = static_cast<std::uint16_t>(std::ceil(256 * bits / (kLn2 * kLn2))),
               .hashes = static_cast<std::uint8_t>(std::max(1.0, std::round(bits / kLn2)))};
  }

  // A group takes at most the bytes of its values and its form.
  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    if (shape.elements == 0) return 0;
    return kBloomHeaderBytes + NumGroups(shape.elements, GroupElements(shape, 0)) +
           4 * shape.elements;
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    return EncodeEach(static_cast<const float*>(values), terms.shape, out,
                      [](const float*, std::uint64_t) {});
  }
  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    return EncodeEach(carried, terms.shape, out,
                      [carried](const float* group, std::uint64_t place) {
                        carried[static_cast<std::uint64_t>(group - carried) + place] = 0;
                      });
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return DecodeEach(encoded, shape, [](std::uint64_t, float) {});
  }
  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    float* const to = static_cast<float*>(values);
    std::fill_n(to, shape.elements, 0.0f);
    return DecodeEach(encoded, shape,
                      [to](std::uint64_t place, float value) { to[place] = value; });
  }
  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    return DecodeEach(encoded, shape, [sum, factor](std::uint64_t place, float value) {
      sum[place] += factor * value;
    });
  }

 private:
  // Calls each(group's values, place in the group) for all sent elements, after writing them.
  template <class Each>
  absl::StatusOr<std::size_t> EncodeEach(const float* values, const CodecShape& shape,
                                         std::span<std::byte> out, const Each& each) const {
    if (shape.elements == 0) return 0;
    const std::uint64_t group = GroupElements(shape, 0);
    if (shape.elements > kMaxSparseElements ||
        filter_.BitsFor(CountOfRatio(filter_.ratio, group)) > kMaxFilterBits) {
      return absl::InvalidArgumentError(
          absl::StrCat("codec bloom: ", shape.elements, " elements in one message are too many"));
    }
    std::vector<std::uint32_t> largest, words, positive;
    if (!FindLargest(values, shape, filter_.ratio, &largest)) return NotFinite(kBloomName);
    const SparseKernels& kernels = ChosenKernels().sparse;
    ByteWriter writer(out);
    writer.Put(filter_.ratio);
    writer.Put(filter_.bits_256);
    writer.Put(filter_.hashes);
    const std::uint32_t* next = largest.data();
    for (std::uint64_t begin = 0; begin < shape.elements; begin += group) {
      const std::uint64_t size = std::min(group, shape.elements - begin);
      const std::uint64_t k = CountOfRatio(filter_.ratio, size), bits = filter_.BitsFor(k);
      const float* const from = values + begin;
      const std::uint64_t filter_bytes = (bits + 7) / 8;
      bool all = filter_bytes + 4 * k >= 4 * size;
      if (!all) {
        positive.assign(next, next + k);
        for (std::uint32_t& place : positive) place -= static_cast<std::uint32_t>(begin);
        words.assign((bits + 31) / 32, 0);
        kernels.add_to_filter(positive.data(), k, static_cast<std::uint32_t>(bits), filter_.hashes,
                              words.data());
        const BloomFilter filter = {.words = words.data(),
                                    .bits = static_cast<std::uint32_t>(bits),
                                    .hashes = filter_.hashes};
        std::size_t found = 0;
        for (std::uint64_t i = 0; i < size && !all; i += kPlacesAtOnce) {
          const std::uint64_t stretch = std::min<std::uint64_t>(kPlacesAtOnce, size - i);
          positive.resize(std::max(positive.size(), found + stretch));
          found += kernels.select_in_filter(filter, static_cast<std::uint32_t>(i), stretch,
                                            positive.data() + found);
          all = filter_bytes + 4 * found >= 4 * size;
        }
        positive.resize(found);
      }
      next += k;
      if (all) {
        writer.Put(kAllValues);
        std::memcpy(writer.Skip(4 * size), from, 4 * size);
        for (std::uint64_t i = 0; i < size; ++i) each(from, i);
        continue;
      }
      writer.Put(kFilter);
      std::memcpy(writer.Skip(filter_bytes), words.data(), filter_bytes);
      for (const std::uint32_t place : positive) {
        writer.Put(from[place]);
        each(from, place);
      }
    }
    return writer.size();
  }

  // Calls each(place, value) for all sent elements.
  template <class Each>
  static absl::Status DecodeEach(std::span<const std::byte> encoded, const CodecShape& shape,
                                 const Each& each) {
    if (shape.elements == 0) {
      if (encoded.empty()) return absl::OkStatus();
      return Malformed(kBloomName, encoded.size(), " bytes for no elements");
    }
    if (shape.elements > kMaxSparseElements)
      return Malformed(kBloomName, shape.elements, " elements");
    ByteReader reader(encoded);
    FilterTerms terms;
    if (!reader.Take(&terms.ratio) || !reader.Take(&terms.bits_256) ||
        !reader.Take(&terms.hashes)) {
      return Malformed(kBloomName, "only ", encoded.size(), " bytes");
    }
    if (!(terms.ratio > 0 && terms.ratio <= 1) || terms.bits_256 == 0 || terms.hashes == 0 ||
        terms.hashes > 32) {
      return Malformed(kBloomName, "ratio ", terms.ratio, ", ", terms.bits_256, "/256 bits, ",
                       static_cast<int>(terms.hashes), " hashes");
    }
    const SparseKernels& kernels = ChosenKernels().sparse;
    std::vector<std::uint32_t> words;
    std::uint32_t places[kPlacesAtOnce];
    bool finite = true;
    const auto take = [&](std::uint64_t place) {
      float value;
      if (!reader.Take(&value)) return false;
      finite = finite && std::isfinite(value);
      each(place, value);
      return true;
    };
    const std::uint64_t group = GroupElements(shape, 0);
    for (std::uint64_t begin = 0; begin < shape.elements; begin += group) {
      const std::uint64_t size = std::min(group, shape.elements - begin);
      std::uint8_t form = 0;
      if (!reader.Take(&form) || form > kFilter) return Malformed(kBloomName, "no form of a group");
      if (form == kAllValues) {
        for (std::uint64_t i = 0; i < size; ++i) {
          if (!take(begin + i)) return Malformed(kBloomName, "too few values");
        }
        continue;
      }
      const std::uint64_t bits = terms.BitsFor(CountOfRatio(terms.ratio, size));
      const std::uint64_t filter_bytes = (bits + 7) / 8;
      const std::byte* const from = reader.Skip(filter_bytes);
      if (from == nullptr || bits > kMaxFilterBits) {
        return Malformed(kBloomName, reader.left(), " bytes for a filter of ", bits, " bits");
      }
      if (bits % 8 != 0 && std::to_integer<unsigned>(from[filter_bytes - 1]) >> bits % 8 != 0) {
        return Malformed(kBloomName, "bits beyond a filter of ", bits);
      }
      words.assign((bits + 31) / 32, 0);
      std::memcpy(words.data(), from, filter_bytes);
      const BloomFilter filter = {
          .words = words.data(), .bits = static_cast<std::uint32_t>(bits), .hashes = terms.hashes};
      for (std::uint64_t i = 0; i < size; i += kPlacesAtOnce) {
        const std::size_t found =
            kernels.select_in_filter(filter, static_cast<std::uint32_t>(i),
                                     std::min<std::uint64_t>(kPlacesAtOnce, size - i), places);
        for (std::size_t j = 0; j < found; ++j) {
          if (!take(begin + places[j])) return Malformed(kBloomName, "too few values");
        }
      }
    }
    if (reader.left() > 0) return Malformed(kBloomName, reader.left(), " bytes too many");
    return finite ? absl::OkStatus() : Malformed(kBloomName, "a value is not finite");
  }

  FilterTerms filter_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeBloom(const CodecOptions& options) {
  double ratio = 0.01, fpr = 0.01;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(
      kBloomName, options,
      {{.name = "", .what = "ratio", .value = &ratio, .low = 0, .high = 1, .low_open = true},
       {.name = "fpr", .value = &fpr, .low = 0, .high = 0.5, .low_open = true}}));
  return std::make_unique<Bloom>(ratio, fpr);
}

}  // namespace

CodecList BloomCodecs() { return {{"bloom", MakeBloom}}; }

}  // namespace leeway::compress
