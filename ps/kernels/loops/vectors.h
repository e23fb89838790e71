// Vectors of the width of the instruction set that the including file is compiled for.
#ifndef LEEWAY_PS_KERNELS_LOOPS_VECTORS_H_
#define LEEWAY_PS_KERNELS_LOOPS_VECTORS_H_

#include <cstddef>
#include <cstdint>

#include "leeway/dtype.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define LEEWAY_INLINE inline __attribute__((always_inline))

namespace leeway::ps {
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
#if defined(__AVX2__)
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
  typedef T Anywhere __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
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

#if defined(__AVX2__)
#define LEEWAY_HAS_FLOAT16_INSTRUCTIONS 1
LEEWAY_INLINE Vector<float> WidenVector(const Float16* from) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from)));
}
LEEWAY_INLINE void NarrowVector(Vector<float> values, Float16* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to),
                   _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#else
#define LEEWAY_HAS_FLOAT16_INSTRUCTIONS 0
#endif

// As many 16-bit numbers as there are floats in a vector, each in 32 bits.
LEEWAY_INLINE Vector<std::uint32_t> ReadBits(const void* from) {
  typedef std::uint16_t Half __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));
  return __builtin_convertvector(*static_cast<const Half*>(from), Vector<std::uint32_t>);
}

#if !LEEWAY_HAS_FLOAT16_INSTRUCTIONS
// As loops/halves.h does it, but that a signalling NaN stays one.
LEEWAY_INLINE Vector<float> WidenVector(const Float16* from) {
  using Bits = Vector<std::uint32_t>;
  const Bits bits = ReadBits(from);
  const Bits magnitude = (bits & 0x7fffu) << 13;
  const Bits scaled = reinterpret_cast<Bits>(reinterpret_cast<Vector<float>>(magnitude) * 0x1p112f);
  const Bits special = (magnitude >= 0x0f800000u) & 0x7f800000u;
  return reinterpret_cast<Vector<float>>(scaled | special | ((bits & 0x8000u) << 16));
}
#endif

LEEWAY_INLINE Vector<float> WidenVector(const BFloat16* from) {
  return reinterpret_cast<Vector<float>>(ReadBits(from) << 16);
}

}  // namespace
}  // namespace leeway::ps

#endif  // LEEWAY_PS_KERNELS_LOOPS_VECTORS_H_
