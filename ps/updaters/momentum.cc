// momentum: gradient descent with heavy-ball momentum (Polyak 1964), in the form of Sutskever,
// Martens, Dahl and Hinton 2013 that torch.optim.SGD has, without dampening.
//
//     d = g + λ w        v ← μ v + d        w ← w − η v
//
// learning_rate η = 0.001, momentum μ = 0.9, weight_decay λ = 0. State: v, from 0.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct MomentumOptions {
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double weight_decay = 0;
};

class Momentum final : public FloatUpdater<Momentum> {
 public:
  explicit Momentum(const MomentumOptions& options) : options_(options) {}
  int state_slots() const override { return 1; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    UpdatesOf<T>().momentum({.rate = static_cast<T>(RateOf(run, options_.learning_rate)),
                             .momentum = static_cast<T>(options_.momentum),
                             .decay = static_cast<T>(options_.weight_decay)},
                            ElementsOf(run));
  }

 private:
  const MomentumOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeMomentum(const UpdaterParameters& parameters) {
  MomentumOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters("momentum", parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"momentum", &options.momentum, kFraction},
                                         {"weight_decay", &options.weight_decay, kNotNegative}}));
  return std::make_unique<Momentum>(options);
}

}  // namespace leeway::ps
