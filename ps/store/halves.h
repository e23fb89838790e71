// Runs of 16-bit floating-point numbers to float and back, without branches, so that the compiler
// vectorises them. They round as Float16 and BFloat16 do: to nearest, ties to even.
#ifndef LEEWAY_PS_STORE_HALVES_H_
#define LEEWAY_PS_STORE_HALVES_H_

#include <cstddef>

#include "leeway/dtype.h"

namespace leeway::ps {

struct HalfKernels {
  void (*widen_float16)(const Float16* from, std::size_t size, float* to);
  void (*widen_bfloat16)(const BFloat16* from, std::size_t size, float* to);
  void (*narrow_float16)(const float* from, std::size_t size, Float16* to);
  void (*narrow_bfloat16)(const float* from, std::size_t size, BFloat16* to);
};

// Compiled for every machine of the kind, and for the best instruction set that this one has.
const HalfKernels& PortableHalfKernels();
const HalfKernels& FastestHalfKernels();

inline void ToFloat(const Float16* from, std::size_t size, float* to) {
  FastestHalfKernels().widen_float16(from, size, to);
}
inline void ToFloat(const BFloat16* from, std::size_t size, float* to) {
  FastestHalfKernels().widen_bfloat16(from, size, to);
}
inline void FromFloat(const float* from, std::size_t size, Float16* to) {
  FastestHalfKernels().narrow_float16(from, size, to);
}
inline void FromFloat(const float* from, std::size_t size, BFloat16* to) {
  FastestHalfKernels().narrow_bfloat16(from, size, to);
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_HALVES_H_
