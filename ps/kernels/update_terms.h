// The terms of one update: the numbers that are the same for all its elements, rounded once to the
// type that it is computed in. The updaters (ps/updaters) make these; the file of each has the
// formula.
#ifndef LEEWAY_PS_KERNELS_UPDATE_TERMS_H_
#define LEEWAY_PS_KERNELS_UPDATE_TERMS_H_

#include <cstddef>

namespace leeway::ps {

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

}  // namespace leeway::ps

#endif  // LEEWAY_PS_KERNELS_UPDATE_TERMS_H_
