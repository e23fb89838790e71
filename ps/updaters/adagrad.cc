// adagrad: a rate per element that falls with the gradients seen (Duchi, Hazan and Singer 2011).
//
//     d = g + λ w        s ← s + d²        w ← w − η / (1 + (t − 1) κ) · d / (√s + ε)
//
// t counts the updates of the block or row from 1. Names and defaults as in torch.optim.Adagrad:
// learning_rate η = 0.01, learning_rate_decay κ = 0, weight_decay λ = 0, epsilon ε = 1e-10,
// initial_accumulator = 0. State: s, from initial_accumulator.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct AdagradOptions {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0;
  double weight_decay = 0;
  double epsilon = 1e-10;
  double initial_accumulator = 0;
};

class Adagrad final : public FloatUpdater<Adagrad> {
 public:
  explicit Adagrad(const AdagradOptions& options) : options_(options) {}
  int state_slots() const override { return 1; }
  double initial_state(int) const override { return options_.initial_accumulator; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    const double slowdown = 1 + static_cast<double>(run.step - 1) * options_.learning_rate_decay;
    const double rate = RateOf(run, options_.learning_rate) / slowdown;
    UpdatesOf<T>().adagrad({.rate = static_cast<T>(rate),
                            .decay = static_cast<T>(options_.weight_decay),
                            .epsilon = static_cast<T>(options_.epsilon)},
                           ElementsOf(run));
  }

 private:
  const AdagradOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeAdagrad(const UpdaterParameters& parameters) {
  AdagradOptions options;
  LEEWAY_RETURN_IF_ERROR(
      ReadParameters("adagrad", parameters,
                     {{"learning_rate", &options.learning_rate, kNotNegative},
                      {"learning_rate_decay", &options.learning_rate_decay, kNotNegative},
                      {"weight_decay", &options.weight_decay, kNotNegative},
                      {"epsilon", &options.epsilon, kPositive},
                      {"initial_accumulator", &options.initial_accumulator, kNotNegative}}));
  return std::make_unique<Adagrad>(options);
}

}  // namespace leeway::ps
