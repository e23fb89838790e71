// fp16 and bf16: each float32 as a 16-bit floating-point number.
//
// fp16 is IEEE 754 binary16 (5 bits of exponent, 10 of fraction; leeway::Float16), bf16 the upper
// half of a binary32 (8 and 7; leeway::BFloat16). Both round to nearest, ties to even: a value in
// the normal range loses no more than 2^-11 (fp16) or 2^-8 (bf16) of its magnitude. fp16 drops
// values up to 2^-25 altogether.
//
// Message: 2 bytes for each element, little-endian; nothing else.
// Options: none.
// NaN and infinity pass. Error feedback keeps 0 in their place, so that they do not come back with
// each later message.
// A finite value beyond the largest finite number (65504 of fp16, 0x7f7f of bf16) becomes that
// number instead of infinity.
#include <memory>
#include <string>

#include "compress/codecs/builtin.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "compress/kernels/kernels.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

class Half final : public FloatCodec {
 public:
  Half(absl::string_view name, HalfKernels HalvesKernels::*format) : name_(name), format_(format) {}

  bool may_give_non_finite() const override { return true; }  // they pass

  std::size_t EncodedBytesMax(const CodecShape& shape) const override { return 2 * shape.elements; }

  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    Kernel().encode(static_cast<const float*>(values), terms.shape.elements, out.data());
    return EncodedBytesMax(terms.shape);
  }

  absl::StatusOr<std::size_t> EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                std::span<std::byte> out) const override {
    Kernel().encode_and_subtract(carried, terms.shape.elements, out.data());
    return EncodedBytesMax(terms.shape);
  }

  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    if (encoded.size() == EncodedBytesMax(shape)) return absl::OkStatus();
    return Malformed(name_, encoded.size(), " bytes are not ", shape.elements, " elements");
  }

  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_RETURN_IF_ERROR(Check(encoded, shape));
    Kernel().decode(encoded.data(), shape.elements, static_cast<float*>(values));
    return absl::OkStatus();
  }

  absl::Status DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape, float factor,
                         float* sum) const override {
    LEEWAY_RETURN_IF_ERROR(Check(encoded, shape));
    Kernel().decode_add(encoded.data(), shape.elements, factor, sum);
    return absl::OkStatus();
  }

 private:
  const HalfKernels& Kernel() const { return ChosenKernels().halves.*format_; }

  std::string name_;
  HalfKernels HalvesKernels::*format_;
};

CodecFactory MakeHalf(absl::string_view name, HalfKernels HalvesKernels::*format) {
  return [name, format](const CodecOptions& options) -> absl::StatusOr<std::unique_ptr<Codec>> {
    LEEWAY_RETURN_IF_ERROR(ReadOptions(name, options, {}));
    return std::make_unique<Half>(name, format);
  };
}

}  // namespace

CodecList HalfCodecs() {
  return {{"fp16", MakeHalf("fp16", &HalvesKernels::fp16)},
          {"bf16", MakeHalf("bf16", &HalvesKernels::bf16)}};
}

}  // namespace leeway::compress
