// The safetensors format: eight bytes with the length of a header (little-endian), the header
// (JSON: each tensor's name, type, shape and place), and the tensors' bytes, one after another
// without gaps. Any program that reads safetensors reads these files.
#ifndef LEEWAY_CHECKPOINT_SAFETENSORS_H_
#define LEEWAY_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/dtype.h"

namespace leeway::checkpoint {

enum class TensorType : std::uint8_t { kF32, kF64, kF16, kBF16, kI32, kI64, kU32, kU64 };

absl::string_view Name(TensorType type);  // "F32"
std::optional<TensorType> TensorTypeNamed(absl::string_view name);
std::uint64_t SizeOf(TensorType type);
TensorType TensorTypeOf(DType dtype);
// None for the types that no table has.
std::optional<DType> DTypeOfTensor(TensorType type);

// Of one file.
inline constexpr std::uint64_t kTensorHeaderBytesMax = 100'000'000;  // as other readers have it
inline constexpr std::size_t kTensorDimensionsMax = 16;
inline constexpr std::uint64_t kTensorLengthBytes = 8;  // before the header

struct TensorInfo {
  std::string name;
  TensorType type = TensorType::kF32;
  std::vector<std::uint64_t> shape = {};
  std::uint64_t begin = 0, end = 0;  // of its bytes, counted from the end of the header

  std::uint64_t bytes() const { return end - begin; }
  friend bool operator==(const TensorInfo&, const TensorInfo&) = default;
};

struct TensorHeader {
  std::vector<TensorInfo> tensors;              // in the order of their bytes
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

// The bytes of a tensor of that type and shape. INVALID_ARGUMENT: more than can be counted.
absl::StatusOr<std::uint64_t> BytesOf(TensorType type, const std::vector<std::uint64_t>& shape);

// The beginning of a file: length and header, padded with blanks so that the bytes begin at a
// multiple of 8. Gives the tensors their places, in the order given.
absl::StatusOr<std::string> EncodeTensorHeader(TensorHeader* header);

// `json`: the header alone; `data_bytes`: what follows it. Believes nothing: INVALID_ARGUMENT
// unless all of it is as it has to be and the tensors fill the bytes without gap or overlap.
absl::StatusOr<TensorHeader> ParseTensorHeader(absl::string_view json, std::uint64_t data_bytes);

}  // namespace leeway::checkpoint

#endif  // LEEWAY_CHECKPOINT_SAFETENSORS_H_
