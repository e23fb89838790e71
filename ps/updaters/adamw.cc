// adamw: Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2, with the
// decay scaled by the rate), as in torch.optim.AdamW.
//
//     w ← w − η λ w      m ← β₁ m + (1 − β₁) g        v ← β₂ v + (1 − β₂) g²
//     w ← w − η · m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε)
//
// t counts the updates of the block or row from 1. learning_rate η = 0.001, beta1 β₁ = 0.9,
// beta2 β₂ = 0.999, epsilon ε = 1e-8, weight_decay λ = 0.01. State: m and v, from 0.
#include "ps/updaters/adam_terms.h"
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

class AdamW final : public FloatUpdater<AdamW> {
 public:
  explicit AdamW(const AdamOptions& options) : options_(options) {}
  int state_slots() const override { return 2; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    UpdatesOf<T>().adamw(AdamTermsOf(options_, run), ElementsOf(run));
  }

 private:
  const AdamOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeAdamW(const UpdaterParameters& parameters) {
  AdamOptions options{.weight_decay = 1e-2};
  LEEWAY_RETURN_IF_ERROR(ReadParameters("adamw", parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"beta1", &options.beta1, kFraction},
                                         {"beta2", &options.beta2, kFraction},
                                         {"epsilon", &options.epsilon, kPositive},
                                         {"weight_decay", &options.weight_decay, kNotNegative}}));
  return std::make_unique<AdamW>(options);
}

}  // namespace leeway::ps
