// The kernels: the loops over elements and keys that a server spends its time in, compiled for
// several instruction sets. The best one that the machine has is chosen at the first use.
//
// All levels compute the same bits: each element's operations are done in the same order and
// rounded one by one (no fused multiply-add), by IEEE 754. Only which NaN a NaN is may differ.
// Pointers need the alignment of their type and no more.
#ifndef LEEWAY_PS_KERNELS_KERNELS_H_
#define LEEWAY_PS_KERNELS_KERNELS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "leeway/dtype.h"
#include "ps/kernels/update_terms.h"
#include "runtime/base/instruction_level.h"

namespace leeway::ps {

using runtime::Level;
using runtime::LevelsHere;

template <class Stored>
inline constexpr bool kIsHalf = std::is_same_v<Stored, Float16> || std::is_same_v<Stored, BFloat16>;

// The type that updaters compute in, and that optimiser state has: float for 16-bit tables.
template <class Stored>
using ComputeOf = std::conditional_t<kIsHalf<Stored>, float, Stored>;

// `count` arrays (at least one), added up in their order: to[i] is
//     (from[0][first + i] + from[1][first + i] + …) · scale        for i < size.
// Each is read once and `to`, which is none of them, written once. Integers wrap around, and
// ignore the scale.
template <class Stored>
using SumKernel = void (*)(const Stored* const* from, std::size_t count, std::size_t first,
                           std::size_t size, ComputeOf<Stored> scale, ComputeOf<Stored>* to);

// One of each of the updaters that are built in, as they are called; integers know add alone, and
// wrap around.
template <class T>
struct UpdateKernels {
  void (*add)(const Elements<T>&);
};

template <std::floating_point T>
struct UpdateKernels<T> {
  void (*add)(const Elements<T>&);
  void (*sgd)(const SgdTerms<T>&, const Elements<T>&);
  void (*momentum)(const MomentumTerms<T>&, const Elements<T>&);
  void (*nesterov)(const MomentumTerms<T>&, const Elements<T>&);
  void (*adagrad)(const AdagradTerms<T>&, const Elements<T>&);
  void (*rmsprop)(const RmspropTerms<T>&, const Elements<T>&);
  void (*adam)(const AdamTerms<T>&, const Elements<T>&);
  void (*adamw)(const AdamTerms<T>&, const Elements<T>&);
  void (*ftrl)(const FtrlTerms<T>&, const Elements<T>&);
};

// 16-bit floating-point numbers to float and back. They round as Float16 and BFloat16 do: to
// nearest, ties to even. A NaN becomes a quiet one.
template <class Half>
struct HalfKernels {
  void (*widen)(const Half* from, std::size_t size, float* to);
  void (*narrow)(const float* from, std::size_t size, Half* to);
};

// Whether any value is NaN or infinite.
template <class T>
using NonFiniteKernel = bool (*)(const T* from, std::size_t size);

struct Kernels {
  struct Sums {
    SumKernel<float> of_float;
    SumKernel<double> of_double;
    SumKernel<Float16> of_float16;
    SumKernel<BFloat16> of_bfloat16;
    SumKernel<std::int32_t> of_int32;
    SumKernel<std::int64_t> of_int64;
  } sum;
  UpdateKernels<float> update_float;
  UpdateKernels<double> update_double;
  UpdateKernels<std::int32_t> update_int32;
  UpdateKernels<std::int64_t> update_int64;
  HalfKernels<Float16> float16;
  HalfKernels<BFloat16> bfloat16;
  struct NonFinites {
    NonFiniteKernel<float> of_float;
    NonFiniteKernel<double> of_double;
    NonFiniteKernel<Float16> of_float16;
    NonFiniteKernel<BFloat16> of_bfloat16;
  } any_non_finite;
  // Whether all keys lie in a shard, of mask + 1 shards, a power of two (proto::ShardOfKey).
  bool (*all_in_shard)(const std::uint64_t* keys, std::size_t size, std::uint64_t mask,
                       std::uint64_t shard);

  template <class Stored>
  SumKernel<Stored> Sum() const {
    if constexpr (std::is_same_v<Stored, float>) return sum.of_float;
    if constexpr (std::is_same_v<Stored, double>) return sum.of_double;
    if constexpr (std::is_same_v<Stored, Float16>) return sum.of_float16;
    if constexpr (std::is_same_v<Stored, BFloat16>) return sum.of_bfloat16;
    if constexpr (std::is_same_v<Stored, std::int32_t>) return sum.of_int32;
    if constexpr (std::is_same_v<Stored, std::int64_t>) return sum.of_int64;
  }

  template <class T>
  const UpdateKernels<T>& Update() const {
    if constexpr (std::is_same_v<T, float>) return update_float;
    if constexpr (std::is_same_v<T, double>) return update_double;
    if constexpr (std::is_same_v<T, std::int32_t>) return update_int32;
    if constexpr (std::is_same_v<T, std::int64_t>) return update_int64;
  }

  template <class Half>
  const HalfKernels<Half>& Halves() const {
    if constexpr (std::is_same_v<Half, Float16>) return float16;
    if constexpr (std::is_same_v<Half, BFloat16>) return bfloat16;
  }
};

// Of a level that is among LevelsHere().
const Kernels& KernelsOf(Level level);

// The chosen ones. Any thread.
const Kernels& ChosenKernels();
Level ChosenLevel();

// Chooses another level than the best, for tests and benchmarks.
void ChooseLevel(Level level);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_KERNELS_KERNELS_H_
