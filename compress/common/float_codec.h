// The base class and helpers of the built-in codecs of float32 values.
#ifndef LEEWAY_COMPRESS_COMMON_FLOAT_CODEC_H_
#define LEEWAY_COMPRESS_COMMON_FLOAT_CODEC_H_

#include "absl/strings/str_cat.h"
#include "leeway/codec.h"

namespace leeway::compress {

// A lossy codec that supports float32 alone; 16-bit tables are widened for it.
class FloatCodec : public Codec {
 public:
  bool Supports(DType dtype) const override { return dtype == DType::kFloat32; }
  bool lossless() const override { return false; }
  // Most of these codecs refuse to encode such values, and their decoders refuse such scales.
  bool may_give_non_finite() const override { return false; }
};

// INVALID_ARGUMENT "malformed NAME message: …": a peer's bytes are no message of this codec.
template <class... Args>
absl::Status Malformed(absl::string_view codec, const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat("malformed ", codec, " message: ", args...));
}

// INVALID_ARGUMENT: the values hold NaN or infinity, which this codec cannot carry.
inline absl::Status NotFinite(absl::string_view codec) {
  return absl::InvalidArgumentError(absl::StrCat("codec ", codec, " carries no NaN or infinity"));
}

// The number of elements that share a scale, a threshold or a count: a row if rows are separate,
// otherwise `group` of them (0: all). The last group may be short.
inline std::uint64_t GroupElements(const CodecShape& shape, std::uint64_t group) {
  if (shape.separate_rows && shape.columns > 0) return shape.columns;
  return group == 0 || group > shape.elements ? shape.elements : group;
}
inline std::uint64_t NumGroups(std::uint64_t elements, std::uint64_t group_elements) {
  return elements == 0 ? 0 : (elements + group_elements - 1) / group_elements;
}

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_COMMON_FLOAT_CODEC_H_
