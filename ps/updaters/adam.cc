// adam and adamw: steps scaled by running means of the gradients and of their squares, as in
// torch.optim.Adam and torch.optim.AdamW. They differ in where the weight decay goes.
//
//     adam (Kingma and Ba 2015, algorithm 1):     d = g + λ w
//     adamw (Loshchilov and Hutter 2019, algorithm 2, with the decay scaled by the rate):
//                                                 w ← w − η λ w        d = g
//
//     m ← β₁ m + (1 − β₁) d        v ← β₂ v + (1 − β₂) d²
//     w ← w − η · m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε)
//
// t counts the updates of the block or row from 1. learning_rate η = 0.001, beta1 β₁ = 0.9,
// beta2 β₂ = 0.999, epsilon ε = 1e-8, weight_decay λ = 0 (adam) or 0.01 (adamw). State: m and v,
// from 0.
#include <cmath>
#include <cstdint>

#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

// base^exponent by repeated squaring. Not std::pow, whose last bit depends on the processor: the C
// library, too, chooses between versions with and without fused multiply-add.
double Power(double base, std::uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power *= base;
    base *= base;
  }
  return power;
}

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

template <bool kDecoupled>
class Adam final : public FloatUpdater<Adam<kDecoupled>> {
 public:
  explicit Adam(const AdamOptions& options) : options_(options) {}
  int state_slots() const override { return 2; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    const AdamTerms<T> terms = AdamTermsOf(options_, run);
    if constexpr (kDecoupled) {
      UpdatesOf<T>().adamw(terms, ElementsOf(run));
    } else {
      UpdatesOf<T>().adam(terms, ElementsOf(run));
    }
  }

 private:
  const AdamOptions options_;
};

template <bool kDecoupled>
absl::StatusOr<std::unique_ptr<Updater>> MakeAdamOf(const char* name, AdamOptions options,
                                                    const UpdaterParameters& parameters) {
  LEEWAY_RETURN_IF_ERROR(ReadParameters(name, parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"beta1", &options.beta1, kFraction},
                                         {"beta2", &options.beta2, kFraction},
                                         {"epsilon", &options.epsilon, kPositive},
                                         {"weight_decay", &options.weight_decay, kNotNegative}}));
  return std::make_unique<Adam<kDecoupled>>(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeAdam(const UpdaterParameters& parameters) {
  return MakeAdamOf<false>("adam", {}, parameters);
}

absl::StatusOr<std::unique_ptr<Updater>> MakeAdamW(const UpdaterParameters& parameters) {
  return MakeAdamOf<true>("adamw", {.weight_decay = 1e-2}, parameters);
}

}  // namespace leeway::ps
