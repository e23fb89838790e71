// The default implementations of Codec: every call in terms of Encode and Decode.
#include "leeway/codec.h"

#include <vector>

#include "runtime/base/status_macros.h"

namespace leeway {

absl::Status Codec::Check(std::span<const std::byte> encoded, const CodecShape& shape) const {
  std::vector<std::byte> values(shape.elements * SizeOf(shape.dtype));
  return Decode(encoded, shape, values.data());
}

absl::Status Codec::DecodeAdd(std::span<const std::byte> encoded, const CodecShape& shape,
                              float factor, float* sum) const {
  std::vector<float> values(shape.elements);
  LEEWAY_RETURN_IF_ERROR(Decode(encoded, shape, values.data()));
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += factor * values[i];
  return absl::OkStatus();
}

absl::Status Codec::AddEncoded(std::span<const std::byte> /*encoded*/, const CodecShape& /*shape*/,
                               std::span<std::byte> /*sum*/) const {
  return absl::UnimplementedError("messages of this codec cannot be added up");
}

absl::StatusOr<std::size_t> Codec::EncodeAndSubtract(float* carried, const EncodeTerms& terms,
                                                     std::span<std::byte> out) const {
  LEEWAY_ASSIGN_OR_RETURN(const std::size_t bytes, Encode(carried, terms, out));
  LEEWAY_RETURN_IF_ERROR(DecodeAdd(out.first(bytes), terms.shape, -1, carried));
  return bytes;
}

}  // namespace leeway
