// fp4: each float32 as a sign and a power of two, in 4 bits, times the scale of its group.
//
// The format is E3M0: 1 bit of sign, 3 of exponent and none of fraction, which Streaming DiLoCo
// sends its outer gradients in (Douillard et al., "Streaming DiLoCo with overlapping
// communication", arXiv 2501.18512, section 2.4):
//     scale   = m, the group's largest magnitude
//     code    = sign · e: e = 0 for 0, else 1 to 7 for scale · 2^(e − 7), the nearest; in the
//               middle between two the larger; below half of the smallest, scale · 2^-7, it is 0
//     decoded = sign · scale · 2^(e − 7)
// So the largest magnitude is exact, others are off by at most a third, and those below 2^-7 of it
// are dropped: error feedback keeps what is lost.
//
// Message: that of groups.h with 4 bits for each element: 8 for the sign and e. 8 alone, which is
// not written, is 0. For a whole block of 131072 elements it has 2 + 512·4 + 65536 bytes.
//
// Options: group (256), elements that share a scale: 0 for the whole message, or a multiple of 8 up
// to 2^18. NaN and infinity are refused.
#include <bit>
#include <cmath>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/byte_io.h"
#include "compress/common/float_codec.h"
#include "compress/common/groups.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

constexpr absl::string_view kFp4Name = "fp4";
constexpr int kFp4Bits = 4;
constexpr int kLargestPower = 7;

// `ratio`: of the magnitude and the scale, up to 1 or a little more.
std::uint8_t PowerOf(float ratio) {
  // The nearest power of two to x is 2^⌊log2(x / 0.75)⌋.
  const int power =
      static_cast<int>(std::bit_cast<std::uint32_t>(ratio / 0.75f) >> 23) - 127 + kLargestPower;
  if (power >= 1) return static_cast<std::uint8_t>(std::min(power, kLargestPower));
  return ratio >= 0x1p-7f ? 1 : 0;
}

float DecodedAs(std::uint8_t code, float scale) {
  const int power = code & 7;
  const float magnitude = power == 0 ? 0 : std::ldexp(scale, power - kLargestPower);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

class Fp4 final : public FloatCodec {
 public:
  explicit Fp4(std::uint64_t group) : group_(group) {}

  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return Groups(shape, group_, kFp4Bits).MessageBytes();
  }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    if (terms.shape.elements == 0) return 0;
    const auto* const from = static_cast<const float*>(values);
    ByteWriter writer(out);
    GroupWriter message(terms.shape, group_, kFp4Bits, &writer);
    const Groups& groups = message.groups();
    for (std::size_t g = 0; g < groups.count(); ++g) {
      const float largest =
          ChosenKernels().reduce.max_abs(from + groups.First(g), groups.Elements(g));
      if (!std::isfinite(largest)) return NotFinite(kFp4Name);
      message.PutScale(g, largest);
      Write(from + groups.First(g), groups.Elements(g), largest, message.Codes(g));
    }
    return writer.size();
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    return Walk(encoded, shape, [](std::size_t, float) {});
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    return Walk(encoded, shape,
                [to = static_cast<float*>(values)](std::size_t i, float value) { to[i] = value; });
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    return Walk(encoded, shape, [=](std::size_t i, float value) { sum[i] += factor * value; });
  }

 private:
  static void Write(const float* values, std::size_t size, float scale, std::uint8_t* codes) {
    const auto code_of = [&](std::size_t i) -> unsigned {
      if (i >= size || scale == 0) return 0;
      const unsigned power = PowerOf(std::abs(values[i]) / scale);
      return power == 0 || values[i] > 0 ? power : power | 8;
    };
    for (std::size_t i = 0; i < size; i += 2) {
      codes[i / 2] = static_cast<std::uint8_t>(code_of(i) | code_of(i + 1) << 4);
    }
  }

  // Calls element(index, value) for each.
  template <class Element>
  static absl::Status Walk(std::span<const std::byte> encoded, const CodecShape& shape,
                           const Element& element) {
    if (shape.elements == 0) return CheckNothing(kFp4Name, encoded);
    ByteReader reader(encoded);
    LEEWAY_ASSIGN_OR_RETURN(const GroupReader message,
                            GroupReader::Of(kFp4Name, shape, kFp4Bits, &reader));
    const Groups& groups = message.groups();
    for (std::size_t g = 0; g < groups.count(); ++g) {
      float values[16];
      for (std::uint8_t code = 0; code < 16; ++code) {
        values[code] = DecodedAs(code, message.Scale(g));
      }
      const std::uint8_t* const codes = message.Codes(g);
      for (std::size_t i = 0; i < groups.Elements(g); ++i) {
        element(groups.First(g) + i, values[codes[i / 2] >> (i % 2 * 4) & 15]);
      }
    }
    return absl::OkStatus();
  }

  const std::uint64_t group_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeFp4(const CodecOptions& options) {
  double group = 256;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(kFp4Name, options, {GroupOption(&group)}));
  LEEWAY_RETURN_IF_ERROR(CheckGroupOption(kFp4Name, group));
  return std::make_unique<Fp4>(static_cast<std::uint64_t>(group));
}

}  // namespace

CodecList Fp4Codecs() { return {{"fp4", MakeFp4}}; }

}  // namespace leeway::compress
