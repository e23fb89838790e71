// The kernels of a server's tables: sums of pushes, the updates of the built-in updaters, and
// checks of what has come.
#ifndef LEEWAY_COMPRESS_KERNELS_UPDATE_KERNELS_H_
#define LEEWAY_COMPRESS_KERNELS_UPDATE_KERNELS_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "leeway/dtype.h"

namespace leeway::compress {

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

// Whether any value is NaN or infinite.
template <class T>
using NonFiniteKernel = bool (*)(const T* from, std::size_t size);

// The terms of an update are the numbers that are the same for all its elements, rounded once to
// the type that it is computed in. The updaters (ps/updaters) make these; the file of each has the
// formula.
// The arrays of an update; none of them overlap.
template <class T>
struct Elements {
  T* value;           // [size]
  const T* gradient;  // [size]
  T* const* state;    // as many slots as the updater has, each [size]
  std::size_t size;
};

template <class T>
struct SgdTerms {
  T rate, decay;
};

template <class T>
struct MomentumTerms {
  T rate, momentum, decay;
};

template <class T>
struct AdagradTerms {
  T rate, decay, epsilon;
};

template <class T>
struct RmspropTerms {
  T rate, alpha, fresh, decay, epsilon;
  T momentum;  // 0: there is no second slot
};

template <class T>
struct AdamTerms {
  T beta1, beta2, fresh1, fresh2, epsilon;
  T step_size;    // η / (1 − β₁ᵗ)
  T correction2;  // 1 / √(1 − β₂ᵗ)
  T decay;        // adam: what of the value is added to the gradient
  T kept;         // adamw: what is left of the value
};

template <class T>
struct FtrlTerms {
  T alpha, beta, l1, l2;
};

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

template <class Kernel, class T>
struct KernelFor {
  Kernel kernel;
};
// A kernel for each of some types of elements.
template <template <class> class Kernel, class... Types>
struct ByType : KernelFor<Kernel<Types>, Types>... {
  template <class T>
  const Kernel<T>& Of() const {
    return static_cast<const KernelFor<Kernel<T>, T>&>(*this).kernel;
  }
};

}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_UPDATE_KERNELS_H_
