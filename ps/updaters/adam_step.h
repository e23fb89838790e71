// The step that adam and adamw share; they differ in where the weight decay goes.
#ifndef LEEWAY_PS_UPDATERS_ADAM_STEP_H_
#define LEEWAY_PS_UPDATERS_ADAM_STEP_H_

#include <cmath>

#include "leeway/updater.h"

namespace leeway::ps {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

// What stays the same over a run, rounded once. t counts the updates of the block or row from 1.
template <class T>
struct AdamStep {
  AdamStep(const AdamOptions& options, double rate, std::uint64_t t)
      : beta1(static_cast<T>(options.beta1)),
        beta2(static_cast<T>(options.beta2)),
        fresh1(static_cast<T>(1 - options.beta1)),
        fresh2(static_cast<T>(1 - options.beta2)),
        epsilon(static_cast<T>(options.epsilon)) {
    const double power = static_cast<double>(t);
    step_size = static_cast<T>(rate / (1 - std::pow(options.beta1, power)));
    correction2 = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, power)));
  }

  // m ← β₁ m + (1 − β₁) d, v ← β₂ v + (1 − β₂) d²; returns what w loses:
  // η m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε).
  T Loss(T d, T& m, T& v) const {
    m = beta1 * m + fresh1 * d;
    v = beta2 * v + fresh2 * d * d;
    return step_size * m / (std::sqrt(v) * correction2 + epsilon);
  }

  T beta1, beta2, fresh1, fresh2, epsilon;
  T step_size;    // η / (1 − β₁ᵗ)
  T correction2;  // 1 / √(1 − β₂ᵗ)
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_UPDATERS_ADAM_STEP_H_
