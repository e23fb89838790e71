// rmsprop: gradients scaled by a running mean of their squares (Tieleman and Hinton 2012), as in
// torch.optim.RMSprop, without centring.
//
//     d = g + λ w        s ← α s + (1 − α) d²        u = d / (√s + ε)
//     μ = 0:  w ← w − η u
//     μ > 0:  v ← μ v + u,  w ← w − η v
//
// learning_rate η = 0.01, alpha α = 0.99, epsilon ε = 1e-8, weight_decay λ = 0, momentum μ = 0.
// State: s and, with momentum, v, both from 0.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct RmspropOptions {
  double learning_rate = 1e-2;
  double alpha = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
};

class Rmsprop final : public FloatUpdater<Rmsprop> {
 public:
  explicit Rmsprop(const RmspropOptions& options) : options_(options) {}
  int state_slots() const override { return options_.momentum > 0 ? 2 : 1; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    UpdatesOf<T>().rmsprop({.rate = static_cast<T>(RateOf(run, options_.learning_rate)),
                            .alpha = static_cast<T>(options_.alpha),
                            .fresh = static_cast<T>(1 - options_.alpha),
                            .decay = static_cast<T>(options_.weight_decay),
                            .epsilon = static_cast<T>(options_.epsilon),
                            .momentum = static_cast<T>(options_.momentum)},
                           ElementsOf(run));
  }

 private:
  const RmspropOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeRmsprop(const UpdaterParameters& parameters) {
  RmspropOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters("rmsprop", parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"alpha", &options.alpha, kFraction},
                                         {"epsilon", &options.epsilon, kPositive},
                                         {"weight_decay", &options.weight_decay, kNotNegative},
                                         {"momentum", &options.momentum, kFraction}}));
  return std::make_unique<Rmsprop>(options);
}

}  // namespace leeway::ps
