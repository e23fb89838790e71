// The types of elements as tables store them, and the types that they are computed in.
#ifndef LEEWAY_PS_STORE_ELEMENTS_H_
#define LEEWAY_PS_STORE_ELEMENTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compress/kernels/kernels.h"
#include "leeway/dtype.h"

namespace leeway::ps {

using compress::ComputeOf;
using compress::kIsHalf;

template <class Stored>
void Load(const Stored* from, std::size_t size, ComputeOf<Stored>* to) {
  if constexpr (kIsHalf<Stored>) {
    compress::ChosenKernels().halves.Of<Stored>().decode(reinterpret_cast<const std::byte*>(from),
                                                         size, to);
  } else {
    std::copy_n(from, size, to);
  }
}

template <class Stored>
void Store(const ComputeOf<Stored>* from, std::size_t size, Stored* to) {
  if constexpr (kIsHalf<Stored>) {
    compress::ChosenKernels().halves.Of<Stored>().narrow(from, size,
                                                         reinterpret_cast<std::byte*>(to));
  } else {
    std::copy_n(from, size, to);
  }
}

// Calls `visitor` with a null pointer of the type that `dtype` is stored as.
template <class Visitor>
auto VisitStored(DType dtype, const Visitor& visitor) {
  switch (dtype) {
    case DType::kFloat64:
      return visitor(static_cast<double*>(nullptr));
    case DType::kFloat16:
      return visitor(static_cast<Float16*>(nullptr));
    case DType::kBFloat16:
      return visitor(static_cast<BFloat16*>(nullptr));
    case DType::kInt32:
      return visitor(static_cast<std::int32_t*>(nullptr));
    case DType::kInt64:
      return visitor(static_cast<std::int64_t*>(nullptr));
    case DType::kFloat32:
      break;
  }
  return visitor(static_cast<float*>(nullptr));
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_ELEMENTS_H_
