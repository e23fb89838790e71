// int8: each float32 as an integer from −127 to 127, times the scale of its group.
//
// Symmetric linear quantisation. For a group with the largest magnitude m:
//     scale   = max(m / 127, 2^-126), and no larger than leaves 127 · scale finite
//     code    = round(value / scale)     to nearest, ties to even; with stochastic=1
//               ⌊value / scale + u⌋      u uniform in [0, 1), of 16 bits: unbiased
//     decoded = code · scale
// The two ways of rounding are those of Gupta et al., "Deep Learning with Limited Numerical
// Precision" (arXiv 1502.02551), section 3.1. u comes from the seed, the group's number and the
// place in the group alone.
//
// Message:
//     2 bytes          elements in a group, less one
//     4 bytes each     scale of every group, float32
//     1 byte each      code of every element, two's complement; −128 is malformed
// Where rows are separate, each row is a group and the number in front is ignored.
//
// Options: group=256, elements that share a scale, 16 to 65536; stochastic=0, or 1.
// NaN and infinity are refused. Values below 2^-127 may be dropped, however small their group's
// are.
#include <limits>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/scaled_bytes.h"

namespace leeway::compress {
namespace {

constexpr float kLargestFloat = std::numeric_limits<float>::max();
constexpr float kLeastScale = std::numeric_limits<float>::min();

class Int8 {
 public:
  static constexpr absl::string_view kName = "int8";
  static constexpr std::size_t kTagBytes = 0;
  using Stored = float;

  explicit Int8(bool stochastic = false) : stochastic_(stochastic) {}

  void PutTag(ByteWriter*) const {}
  static bool TakeTag(ByteReader*, Int8*) { return true; }

  Stored Choose(float largest) const {
    const float scale = std::max(largest / 127, kLeastScale);
    return IsScale(scale) ? scale : std::nextafter(scale, 0.0f);
  }
  bool IsScale(Stored scale) const { return scale >= kLeastScale && 127 * scale <= kLargestFloat; }
  float ScaleOf(Stored scale) const { return scale; }

  bool AreCodes(const std::byte* codes, std::size_t size) const {
    return ChosenKernels().eight_bit.largest(codes, size, 0xff, 0x7f) != 0xff;
  }

  void Encode(const float* values, std::size_t size, float scale, std::uint64_t key,
              std::byte* to) const {
    const Int8Kernels& kernels = ChosenKernels().eight_bit.int8;
    if (stochastic_) {
      kernels.encode_random(values, size, scale, key, to);
    } else {
      kernels.encode(values, size, scale, to);
    }
  }
  void EncodeAndSubtract(float* carried, std::size_t size, float scale, std::uint64_t key,
                         std::byte* to) const {
    const Int8Kernels& kernels = ChosenKernels().eight_bit.int8;
    if (stochastic_) {
      kernels.encode_random_and_subtract(carried, size, scale, key, to);
    } else {
      kernels.encode_and_subtract(carried, size, scale, to);
    }
  }
  void Decode(const std::byte* codes, std::size_t size, float scale, float* values) const {
    ChosenKernels().eight_bit.int8.decode(codes, size, scale, values);
  }
  void DecodeAdd(const std::byte* codes, std::size_t size, float scale, float factor,
                 float* sum) const {
    ChosenKernels().eight_bit.int8.decode_add(codes, size, scale, factor, sum);
  }

 private:
  bool stochastic_;
};

absl::StatusOr<std::unique_ptr<Codec>> MakeInt8(const CodecOptions& options) {
  double group = 256, stochastic = 0;
  LEEWAY_RETURN_IF_ERROR(ReadOptions(
      "int8", options,
      {ScaledGroupOption(&group),
       {.name = "stochastic", .value = &stochastic, .low = 0, .high = 1, .whole = true}}));
  return std::make_unique<ScaledBytes<Int8>>(Int8(stochastic == 1),
                                             static_cast<std::uint64_t>(group));
}

}  // namespace

CodecList Int8Codecs() { return {{"int8", MakeInt8}}; }

}  // namespace leeway::compress
