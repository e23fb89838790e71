// Vectors of the width of the instruction set that the including file is compiled for.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_VECTORS_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_VECTORS_H_

#include <cstddef>
#include <cstdint>

#define LEEWAY_INLINE inline __attribute__((always_inline))

namespace leeway::compress {
namespace {

// The type that a sum is computed in: unsigned for integers, whose overflow is then defined.
template <class T>
struct AddedAs {
  using Type = T;
};
template <>
struct AddedAs<std::int32_t> {
  using Type = std::uint32_t;
};
template <>
struct AddedAs<std::int64_t> {
  using Type = std::uint64_t;
};

// No wider with AVX-512: what is received lies anywhere, and a load of a whole line of the cache
// that does not begin with the line takes two each time. Measured, that was slower by up to a
// third.
#if defined(LEEWAY_ONE_AT_A_TIME)
constexpr std::size_t kVectorBytes = 4;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif
constexpr int kVectorsAtOnce = 8;  // in registers: several lines of the cache

template <class T>
constexpr std::size_t kLanes = kVectorBytes / sizeof(T);

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef T Anywhere __attribute__((vector_size(kVectorBytes), aligned(1), may_alias));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
LEEWAY_INLINE Vector<T> Read(const T* from) {
  return *reinterpret_cast<const typename VectorOf<T>::Anywhere*>(from);
}

template <class T>
LEEWAY_INLINE void Write(T* to, Vector<T> values) {
  *reinterpret_cast<typename VectorOf<T>::Anywhere*>(to) = values;
}

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_VECTORS_H_
