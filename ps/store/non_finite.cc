#include "ps/kernels/kernels.h"
#include "ps/store/shard_store.h"

namespace leeway::ps {
namespace {

template <class T>
bool Any(NonFiniteKernel<T> kernel, std::span<const std::byte> values) {
  return kernel(reinterpret_cast<const T*>(values.data()), values.size() / sizeof(T));
}

}  // namespace

bool HasNonFinite(DType dtype, std::span<const std::byte> values) {
  const Kernels::NonFinites& any = ChosenKernels().any_non_finite;
  switch (dtype) {
    case DType::kFloat32:
      return Any<float>(any.of_float, values);
    case DType::kFloat64:
      return Any<double>(any.of_double, values);
    case DType::kFloat16:
      return Any<Float16>(any.of_float16, values);
    case DType::kBFloat16:
      return Any<BFloat16>(any.of_bfloat16, values);
    case DType::kInt32:
    case DType::kInt64:
      return false;
  }
  return false;
}

}  // namespace leeway::ps
