// What adam and adamw share; they differ in where the weight decay goes.
#ifndef LEEWAY_PS_UPDATERS_ADAM_TERMS_H_
#define LEEWAY_PS_UPDATERS_ADAM_TERMS_H_

#include <cmath>
#include <cstdint>

#include "leeway/updater.h"
#include "ps/updaters/kernel.h"

namespace leeway::ps {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

// base^exponent by repeated squaring. Not std::pow, whose last bit depends on the processor: the C
// library, too, chooses between versions with and without fused multiply-add.
inline double Power(double base, std::uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power *= base;
    base *= base;
  }
  return power;
}

// run.step counts the updates of the block or row from 1.
template <class T>
AdamTerms<T> AdamTermsOf(const AdamOptions& options, const UpdateRun<T>& run) {
  const double rate = RateOf(run, options.learning_rate);
  return {.beta1 = static_cast<T>(options.beta1),
          .beta2 = static_cast<T>(options.beta2),
          .fresh1 = static_cast<T>(1 - options.beta1),
          .fresh2 = static_cast<T>(1 - options.beta2),
          .epsilon = static_cast<T>(options.epsilon),
          .step_size = static_cast<T>(rate / (1 - Power(options.beta1, run.step))),
          .correction2 = static_cast<T>(1 / std::sqrt(1 - Power(options.beta2, run.step))),
          .decay = static_cast<T>(options.weight_decay),
          .kept = static_cast<T>(1 - rate * options.weight_decay)};
}

}  // namespace leeway::ps

#endif  // LEEWAY_PS_UPDATERS_ADAM_TERMS_H_
