#include "worker/slicing/combine_rows.h"

#include <cstring>
#include <limits>

#include "absl/numeric/int128.h"

namespace leeway::worker {
namespace {

// The user's memory is aligned for T: it was given as a span of T.
template <class T, class Sum>
void SumRows(const std::byte* rows, std::uint64_t width, std::span<const std::uint32_t> which,
             std::byte* out) {
  const T* from = reinterpret_cast<const T*>(rows);
  T* to = reinterpret_cast<T*>(out);
  for (std::uint64_t e = 0; e < width; ++e) {
    Sum sum = static_cast<Sum>(from[std::uint64_t{which[0]} * width + e]);
    for (const std::uint64_t row : which.subspan(1)) {
      sum += static_cast<Sum>(from[row * width + e]);
    }
    to[e] = static_cast<T>(sum);
  }
}

template <class T, class Sum>
bool AnySumWraps(const std::byte* rows, std::uint64_t width, std::span<const std::uint32_t> which) {
  const T* from = reinterpret_cast<const T*>(rows);
  for (std::uint64_t e = 0; e < width; ++e) {
    Sum sum = 0;
    for (const std::uint64_t row : which) sum += from[row * width + e];
    if (sum < std::numeric_limits<T>::min() || sum > std::numeric_limits<T>::max()) return true;
  }
  return false;
}

}  // namespace

bool SumsWrap(DType dtype, const std::byte* rows, std::uint64_t width,
              std::span<const std::uint32_t> which) {
  if (which.size() == 1) return false;
  if (dtype == DType::kInt32) return AnySumWraps<std::int32_t, std::int64_t>(rows, width, which);
  if (dtype == DType::kInt64) return AnySumWraps<std::int64_t, absl::int128>(rows, width, which);
  return false;
}

void CombineRows(Updater::Combine combine, DType dtype, const std::byte* rows, std::uint64_t width,
                 std::span<const std::uint32_t> which, std::byte* out) {
  if (combine == Updater::Combine::kLast || which.size() == 1) {
    const std::uint64_t bytes = width * SizeOf(dtype);
    std::memcpy(out, rows + which.back() * bytes, bytes);
    return;
  }
  switch (dtype) {
    case DType::kFloat32:
      return SumRows<float, float>(rows, width, which, out);
    case DType::kFloat64:
      return SumRows<double, double>(rows, width, which, out);
    case DType::kFloat16:
      return SumRows<Float16, float>(rows, width, which, out);
    case DType::kBFloat16:
      return SumRows<BFloat16, float>(rows, width, which, out);
    case DType::kInt32:
      return SumRows<std::int32_t, std::uint32_t>(rows, width, which, out);
    case DType::kInt64:
      return SumRows<std::int64_t, std::uint64_t>(rows, width, which, out);
  }
}

}  // namespace leeway::worker
