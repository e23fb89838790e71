#include "leeway/dtype.h"

namespace leeway {
namespace {

constexpr std::uint32_t kFloatInfinity = 0x7f800000;
constexpr std::uint32_t kFloatMagnitude = 0x7fffffff;

}  // namespace

Float16::Float16(float value) {
  const auto whole = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = whole & kFloatMagnitude;
  std::uint32_t half = 0;
  if (magnitude > kFloatInfinity) {
    // NaN: keep as much of the payload as fits, and never let it become an infinity.
    const std::uint32_t payload = (magnitude >> 13) & 0x3ff;
    half = 0x7c00 | (payload != 0 ? payload : 0x200);
  } else if (magnitude >= std::bit_cast<std::uint32_t>(65520.0f)) {
    half = 0x7c00;  // halfway between the largest finite value and the next power of two, or more
  } else if (magnitude < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    // A subnormal half counts units of 2^-24, which is also the unit in the last place of numbers
    // in [0.5, 1): the addition rounds for us, to nearest with ties to even.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    // Rebias the exponent by 127 − 15 and round away 13 bits; a carry may go into the exponent.
    const std::uint32_t odd = (magnitude >> 13) & 1;
    half = (magnitude - (112u << 23) + 0xfff + odd) >> 13;
  }
  bits = static_cast<std::uint16_t>(((whole >> 16) & 0x8000) | half);
}

Float16::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  const std::uint32_t wide = exponent == 0x1f ? kFloatInfinity : (exponent + 112) << 23;
  return std::bit_cast<float>(sign | wide | (fraction << 13));
}

BFloat16::BFloat16(float value) {
  const auto whole = std::bit_cast<std::uint32_t>(value);
  if ((whole & kFloatMagnitude) > kFloatInfinity) {
    // NaN: rounding could carry it into an infinity or a zero, so cut, and keep a fraction bit set.
    const auto upper = static_cast<std::uint16_t>(whole >> 16);
    bits = (upper & 0x7f) != 0 ? upper : static_cast<std::uint16_t>(upper | 0x40);
    return;
  }
  const std::uint32_t odd = (whole >> 16) & 1;
  bits = static_cast<std::uint16_t>((whole + 0x7fff + odd) >> 16);
}

absl::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
  }
  return "unknown";
}

}  // namespace leeway
