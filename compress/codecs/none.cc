// none: values as they are.
#include <cstring>
#include <memory>

#include "compress/codecs/builtin.h"
#include "compress/common/float_codec.h"
#include "compress/common/options.h"
#include "runtime/base/status_macros.h"

namespace leeway::compress {
namespace {

class None final : public Codec {
 public:
  bool Supports(DType) const override { return true; }
  bool lossless() const override { return true; }
  std::size_t EncodedBytesMax(const CodecShape& shape) const override {
    return shape.elements * SizeOf(shape.dtype);
  }
  absl::StatusOr<std::size_t> Encode(const void* values, const EncodeTerms& terms,
                                     std::span<std::byte> out) const override {
    const std::size_t bytes = EncodedBytesMax(terms.shape);
    if (bytes > 0) std::memcpy(out.data(), values, bytes);
    return bytes;
  }
  absl::Status Check(std::span<const std::byte> encoded, const CodecShape& shape) const override {
    if (encoded.size() == EncodedBytesMax(shape)) return absl::OkStatus();
    return Malformed("none", encoded.size(), " bytes are not ", shape.elements, " elements of ",
                     Name(shape.dtype));
  }
  absl::Status Decode(std::span<const std::byte> encoded, const CodecShape& shape,
                      void* values) const override {
    LEEWAY_RETURN_IF_ERROR(Check(encoded, shape));
    if (!encoded.empty()) std::memcpy(values, encoded.data(), encoded.size());
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Codec>> MakeNone(const CodecOptions& options) {
  LEEWAY_RETURN_IF_ERROR(ReadOptions("none", options, {}));
  return std::make_unique<None>();
}

}  // namespace

CodecList NoneCodecs() { return {{"none", MakeNone}}; }

}  // namespace leeway::compress
