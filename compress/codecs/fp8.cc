// fp8: each float32 as an 8-bit floating-point number, times the scale of its group.
//
// The formats are those of OCP FP8 (Micikevicius et al., "FP8 Formats for Deep Learning", arXiv
// 2209.05433, table 1): e4m3 has 4 bits of exponent (bias 7) and 3 of fraction, magnitudes 2^-9 to
// 448; e5m2 has 5 (bias 15) and 2, 2^-16 to 57344. So that small gradients do not underflow, each
// group has a scale, the least power of two with which nothing in it exceeds the format's largest
// number:
//     scale   = 2^e, e the least with m ≤ largest · 2^e, m the group's largest magnitude;
//               e ≥ −126, and no larger than leaves largest · 2^e finite: 119 (e4m3), 112 (e5m2)
//     code    = value / scale in the format, to nearest, ties to even, saturating
//     decoded = code · scale
// Values saturate only where e cannot grow further: from 448 · 2^119, almost the largest float.
// Values keep the format's precision down to 2^-13 (e4m3) or 2^-28 (e5m2) of their group's largest
// magnitude, and are dropped below 2^-19 or 2^-33 of it.
//
// Message:
//     1 byte          format: 0 e4m3, 1 e5m2
//     2 bytes         elements in a group, less one
//     1 byte each     e + 127 of every group, 1 to 246 (e4m3) or 239 (e5m2)
//     1 byte each     number of every element; the formats' NaN and infinity are malformed
// Where rows are separate, each row is a group and the number in front is ignored.
//
// Options: e4m3 (default) or e5m2, without a key; group=256, elements that share a scale, 16 to
// 65536. NaN and infinity are refused.
#include <bit>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/scaled_bytes.h"

namespace leeway::compress {
namespace {

class Fp8 {
 public:
  static constexpr absl::string_view kName = "fp8";
  static constexpr std::size_t kTagBytes = 1;
  using Stored = std::uint8_t;

  enum class Format : std::uint8_t { kE4M3 = 0, kE5M2 = 1 };

  explicit Fp8(Format format = Format::kE4M3) : format_(format) {}

  void PutTag(ByteWriter* writer) const { writer->Put(format_); }
  static bool TakeTag(ByteReader* reader, Fp8* format) {
    return reader->Take(&format->format_) && format->format_ <= Format::kE5M2;
  }

  Stored Choose(float largest) const {
    // Both formats' largest number is 1.75 times a power of two.
    const auto bits = std::bit_cast<std::uint32_t>(largest);
    const int exponent = static_cast<int>(bits >> 23);
    const int above = (bits & 0x7fffff) > 0x600000 ? 1 : 0;
    return static_cast<Stored>(std::clamp(exponent + above - LargestExponent(), 1, Most()));
  }
  bool IsScale(Stored scale) const { return scale >= 1 && scale <= Most(); }
  float ScaleOf(Stored scale) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(scale) << 23);
  }

  bool AreCodes(const std::byte* codes, std::size_t size) const {
    const std::uint8_t largest = format_ == Format::kE4M3 ? 0x7e : 0x7b;
    return ChosenKernels().eight_bit.largest(codes, size, 0x7f, 0) <= largest;
  }

  void Encode(const float* values, std::size_t size, float scale, std::uint64_t /*key*/,
              std::byte* to) const {
    Kernels().encode(values, size, scale, to);
  }
  void EncodeAndSubtract(float* carried, std::size_t size, float scale, std::uint64_t /*key*/,
                         std::byte* to) const {
    Kernels().encode_and_subtract(carried, size, scale, to);
  }
  void Decode(const std::byte* codes, std::size_t size, float scale, float* values) const {
    Kernels().decode(codes, size, scale, values);
  }
  void DecodeAdd(const std::byte* codes, std::size_t size, float scale, float factor,
                 float* sum) const {
    Kernels().decode_add(codes, size, scale, factor, sum);
  }

 private:
  // The exponent of the format's largest number; added to the scale's it is at most 127, a float's.
  int LargestExponent() const { return format_ == Format::kE4M3 ? 8 : 15; }
  int Most() const { return 254 - LargestExponent(); }
  const Fp8Kernels& Kernels() const {
    const EightBitKernels& kernels = ChosenKernels().eight_bit;
    return format_ == Format::kE4M3 ? kernels.e4m3 : kernels.e5m2;
  }

  Format format_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeFp8(const CodecOptions& options) {
  CodecOptions numbers = options;
  Fp8::Format format = Fp8::Format::kE4M3;
  if (const auto named = numbers.extract(""); !named.empty()) {
    if (named.mapped() == "e5m2") {
      format = Fp8::Format::kE5M2;
    } else if (named.mapped() != "e4m3") {
      return absl::InvalidArgumentError(
          absl::StrCat("codec fp8: format is ", named.mapped(), ", may be e4m3 or e5m2"));
    }
  }
  double group = 256;
  LEEWAY_RETURN_IF_ERROR(ReadOptions("fp8", numbers, {ScaledGroupOption(&group)}));
  return std::make_unique<ScaledBytes<Fp8>>(Fp8(format), static_cast<std::uint64_t>(group));
}

}  // namespace

CodecList Fp8Codecs() { return {{"fp8", MakeFp8}}; }

}  // namespace leeway::compress
