// A DType is the element type of a table; Float16 and BFloat16 are the 16-bit floating-point types
// that C++20 lacks.
#ifndef LEEWAY_DTYPE_H_
#define LEEWAY_DTYPE_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace leeway {

// The numbers are on the wire and in checkpoints: append, never renumber.
enum class DType : std::uint8_t {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt32 = 4,
  kInt64 = 5,
};
inline constexpr int kDTypeCount = 6;

// IEEE 754 binary16. Arithmetic is done in float; this type only stores.
struct Float16 {
  std::uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);  // rounds to nearest, ties to even
  explicit operator float() const;
  friend bool operator==(Float16 a, Float16 b) { return a.bits == b.bits; }
};

// The upper half of a binary32. Arithmetic is done in float; this type only stores.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);  // rounds to nearest, ties to even; NaN stays NaN
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  friend bool operator==(BFloat16 a, BFloat16 b) { return a.bits == b.bits; }
};

constexpr std::size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
  }
  return 0;
}

// The type that an updater computes in and that optimiser state is kept in: float32 for 16-bit
// tables.
constexpr DType ComputeType(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16 ? DType::kFloat32 : dtype;
}

constexpr bool IsInteger(DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; }

// "float32", "int64", …; "unknown" for other numbers.
absl::string_view Name(DType dtype);

// DTypeOf<float> is kFloat32, and so on; other types do not compile.
template <class T>
struct DTypeOfT;
template <>
struct DTypeOfT<float> : std::integral_constant<DType, DType::kFloat32> {};
template <>
struct DTypeOfT<double> : std::integral_constant<DType, DType::kFloat64> {};
template <>
struct DTypeOfT<Float16> : std::integral_constant<DType, DType::kFloat16> {};
template <>
struct DTypeOfT<BFloat16> : std::integral_constant<DType, DType::kBFloat16> {};
template <>
struct DTypeOfT<std::int32_t> : std::integral_constant<DType, DType::kInt32> {};
template <>
struct DTypeOfT<std::int64_t> : std::integral_constant<DType, DType::kInt64> {};
template <class T>
inline constexpr DType DTypeOf = DTypeOfT<T>::value;

}  // namespace leeway

#endif  // LEEWAY_DTYPE_H_
