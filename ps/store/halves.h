// Runs of 16-bit floating-point numbers to float and back, without branches, so that the compiler
// vectorises them. They round as Float16 and BFloat16 do: to nearest, ties to even.
#ifndef LEEWAY_PS_STORE_HALVES_H_
#define LEEWAY_PS_STORE_HALVES_H_

#include <cstddef>

#include "leeway/dtype.h"

namespace leeway::ps {

void ToFloat(const Float16* from, std::size_t size, float* to);
void ToFloat(const BFloat16* from, std::size_t size, float* to);
void FromFloat(const float* from, std::size_t size, Float16* to);
void FromFloat(const float* from, std::size_t size, BFloat16* to);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_STORE_HALVES_H_
