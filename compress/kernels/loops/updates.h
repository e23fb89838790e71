// The updates of the built-in updaters over a run of elements: plain loops over pointers that do
// not overlap, so that the compiler vectorises them.
#ifndef LEEWAY_COMPRESS_KERNELS_LOOPS_UPDATES_H_
#define LEEWAY_COMPRESS_KERNELS_LOOPS_UPDATES_H_

#include <cstddef>

#include "compress/kernels/loops/vectors.h"
#include "compress/kernels/update_kernels.h"

namespace leeway::compress {
namespace {

LEEWAY_INLINE float Root(float x) { return __builtin_sqrtf(x); }
LEEWAY_INLINE double Root(double x) { return __builtin_sqrt(x); }
LEEWAY_INLINE float Absolute(float x) { return __builtin_fabsf(x); }
LEEWAY_INLINE double Absolute(double x) { return __builtin_fabs(x); }
LEEWAY_INLINE float WithSignOf(float x, float sign) { return __builtin_copysignf(x, sign); }
LEEWAY_INLINE double WithSignOf(double x, double sign) { return __builtin_copysign(x, sign); }

template <class T>
void Add(const Elements<T>& run) {
  T* __restrict w = run.value;
  const T* __restrict g = run.gradient;
  using As = typename AddedAs<T>::Type;
  for (std::size_t i = 0; i < run.size; ++i) {
    w[i] = static_cast<T>(static_cast<As>(w[i]) + static_cast<As>(g[i]));
  }
}

template <class T>
void Sgd(const SgdTerms<T>& terms, const Elements<T>& run) {
  const SgdTerms<T> by = terms;  // where no store can change them
  T* __restrict w = run.value;
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) w[i] -= by.rate * (g[i] + by.decay * w[i]);
}

template <class T>
void Momentum(const MomentumTerms<T>& terms, const Elements<T>& run) {
  const MomentumTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict v = run.state[0];
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) {
    v[i] = by.momentum * v[i] + (g[i] + by.decay * w[i]);
    w[i] -= by.rate * v[i];
  }
}

template <class T>
void Nesterov(const MomentumTerms<T>& terms, const Elements<T>& run) {
  const MomentumTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict v = run.state[0];
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) {
    const T d = g[i] + by.decay * w[i];
    v[i] = by.momentum * v[i] + d;
    w[i] -= by.rate * (d + by.momentum * v[i]);
  }
}

template <class T>
void Adagrad(const AdagradTerms<T>& terms, const Elements<T>& run) {
  const AdagradTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict s = run.state[0];
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) {
    const T d = g[i] + by.decay * w[i];
    s[i] += d * d;
    w[i] -= by.rate * d / (Root(s[i]) + by.epsilon);
  }
}

// Brings `s` up to date; what the value loses, but for the rate.
template <class T>
LEEWAY_INLINE T RmspropStep(const RmspropTerms<T>& by, T w, T g, T& s) {
  const T d = g + by.decay * w;
  s = by.alpha * s + by.fresh * d * d;
  return d / (Root(s) + by.epsilon);
}

template <class T>
void Rmsprop(const RmspropTerms<T>& terms, const Elements<T>& run) {
  const RmspropTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict s = run.state[0];
  const T* __restrict g = run.gradient;
  if (by.momentum > 0) {
    T* __restrict v = run.state[1];
    for (std::size_t i = 0; i < run.size; ++i) {
      v[i] = by.momentum * v[i] + RmspropStep(by, w[i], g[i], s[i]);
      w[i] -= by.rate * v[i];
    }
  } else {
    for (std::size_t i = 0; i < run.size; ++i) w[i] -= by.rate * RmspropStep(by, w[i], g[i], s[i]);
  }
}

// m ← β₁ m + (1 − β₁) d, v ← β₂ v + (1 − β₂) d²; returns what the value loses:
// η m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε).
template <class T>
LEEWAY_INLINE T AdamStep(const AdamTerms<T>& by, T d, T& m, T& v) {
  m = by.beta1 * m + by.fresh1 * d;
  v = by.beta2 * v + by.fresh2 * d * d;
  return by.step_size * m / (Root(v) * by.correction2 + by.epsilon);
}

template <class T>
void Adam(const AdamTerms<T>& terms, const Elements<T>& run) {
  const AdamTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict m = run.state[0];
  T* __restrict v = run.state[1];
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) {
    w[i] -= AdamStep(by, g[i] + by.decay * w[i], m[i], v[i]);
  }
}

template <class T>
void AdamW(const AdamTerms<T>& terms, const Elements<T>& run) {
  const AdamTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict m = run.state[0];
  T* __restrict v = run.state[1];
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) {
    w[i] = w[i] * by.kept - AdamStep(by, g[i], m[i], v[i]);
  }
}

template <class T>
void Ftrl(const FtrlTerms<T>& terms, const Elements<T>& run) {
  const FtrlTerms<T> by = terms;
  T* __restrict w = run.value;
  T* __restrict z = run.state[0];
  T* __restrict n = run.state[1];
  const T* __restrict g = run.gradient;
  for (std::size_t i = 0; i < run.size; ++i) {
    const T sum = n[i] + g[i] * g[i];
    const T root = Root(sum);
    z[i] += g[i] - (root - Root(n[i])) / by.alpha * w[i];
    n[i] = sum;
    const T shrunk = z[i] - WithSignOf(by.l1, z[i]);
    // With β = λ₂ = 0 and no gradient yet the divisor is 0, and so is z.
    const T divisor = (by.beta + root) / by.alpha + by.l2;
    w[i] = Absolute(z[i]) <= by.l1 ? T{0} : -shrunk / divisor;
  }
}

template <class T>
constexpr UpdateKernels<T> kUpdateLoops = {.add = Add<T>};

template <std::floating_point T>
constexpr UpdateKernels<T> kUpdateLoops<T> = {.add = Add<T>,
                                              .sgd = Sgd<T>,
                                              .momentum = Momentum<T>,
                                              .nesterov = Nesterov<T>,
                                              .adagrad = Adagrad<T>,
                                              .rmsprop = Rmsprop<T>,
                                              .adam = Adam<T>,
                                              .adamw = AdamW<T>,
                                              .ftrl = Ftrl<T>};

}  // namespace
}  // namespace leeway::compress

#endif  // LEEWAY_COMPRESS_KERNELS_LOOPS_UPDATES_H_
