#include <cstring>

#include "ps/store/shard_store.h"
#include "runtime/prefetch.h"

namespace leeway::ps {
namespace {

constexpr std::size_t kStretch = 256;  // bytes between two looks at the result

// A number is not finite when its exponent is all ones: then, and only then, adding one to the
// exponent carries into the sign bit. Integer operations alone, so that it vectorises.
template <class Bits>
bool AnyNonFinite(std::span<const std::byte> values, Bits exponent, Bits lowest) {
  constexpr int kSign = sizeof(Bits) * 8 - 1;
  constexpr std::size_t kElements = kStretch / sizeof(Bits);
  const std::size_t size = values.size() / sizeof(Bits);
  for (std::size_t begin = 0; begin < size; begin += kElements) {
    const std::size_t end = begin + kElements < size ? begin + kElements : size;
    runtime::PrefetchAhead(values, begin * sizeof(Bits), kStretch);
    Bits carried = 0;
    for (std::size_t i = begin; i < end; ++i) {
      Bits bits;
      std::memcpy(&bits, values.data() + i * sizeof(Bits), sizeof(Bits));
      carried = static_cast<Bits>(carried | ((bits & exponent) + lowest));
    }
    if (carried >> kSign != 0) return true;
  }
  return false;
}

}  // namespace

bool HasNonFinite(DType dtype, std::span<const std::byte> values) {
  switch (dtype) {
    case DType::kFloat32:
      return AnyNonFinite<std::uint32_t>(values, 0x7f800000u, 0x00800000u);
    case DType::kFloat64:
      return AnyNonFinite<std::uint64_t>(values, 0x7ff0000000000000u, 0x0010000000000000u);
    case DType::kFloat16:
      return AnyNonFinite<std::uint16_t>(values, 0x7c00u, 0x0400u);
    case DType::kBFloat16:
      return AnyNonFinite<std::uint16_t>(values, 0x7f80u, 0x0080u);
    case DType::kInt32:
    case DType::kInt64:
      return false;
  }
  return false;
}

}  // namespace leeway::ps
