#include "checkpoint/safetensors.h"

#include <limits>

#include "absl/strings/str_cat.h"

namespace leeway::checkpoint {
namespace {

struct Type {
  TensorType type;
  absl::string_view name;
  std::uint64_t size;
};

constexpr Type kTypes[] = {
    {TensorType::kF32, "F32", 4},   {TensorType::kF64, "F64", 8}, {TensorType::kF16, "F16", 2},
    {TensorType::kBF16, "BF16", 2}, {TensorType::kI32, "I32", 4}, {TensorType::kI64, "I64", 8},
    {TensorType::kU32, "U32", 4},   {TensorType::kU64, "U64", 8},
};

const Type& Find(TensorType type) { return kTypes[static_cast<std::size_t>(type)]; }

}  // namespace

absl::string_view Name(TensorType type) { return Find(type).name; }
std::uint64_t SizeOf(TensorType type) { return Find(type).size; }

std::optional<TensorType> TensorTypeNamed(absl::string_view name) {
  for (const Type& type : kTypes) {
    if (type.name == name) return type.type;
  }
  return std::nullopt;
}

TensorType TensorTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return TensorType::kF32;
    case DType::kFloat64:
      return TensorType::kF64;
    case DType::kFloat16:
      return TensorType::kF16;
    case DType::kBFloat16:
      return TensorType::kBF16;
    case DType::kInt32:
      return TensorType::kI32;
    case DType::kInt64:
      return TensorType::kI64;
  }
  return TensorType::kF32;
}

std::optional<DType> DTypeOfTensor(TensorType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (TensorTypeOf(dtype) == type) return dtype;
  }
  return std::nullopt;
}

absl::StatusOr<std::uint64_t> BytesOf(TensorType type, const std::vector<std::uint64_t>& shape) {
  std::uint64_t bytes = SizeOf(type);
  bool empty = false;
  for (const std::uint64_t extent : shape) empty = empty || extent == 0;
  if (empty) return 0;
  for (const std::uint64_t extent : shape) {
    if (bytes > std::numeric_limits<std::uint64_t>::max() / extent) {
      return absl::InvalidArgumentError("a shape with more bytes than can be counted");
    }
    bytes *= extent;
  }
  return bytes;
}

}  // namespace leeway::checkpoint
