// momentum and nesterov: gradient descent with momentum, in the forms of torch.optim.SGD without
// dampening.
//
//     d = g + λ w        v ← μ v + d
//     w ← w − η v               momentum: heavy-ball momentum (Polyak 1964; Sutskever, Martens,
//                               Dahl and Hinton 2013)
//     w ← w − η (d + μ v)       nesterov: Nesterov's momentum (Nesterov 1983), which looks ahead
//                               from the values themselves; torch.optim.SGD(nesterov=True)
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

template <bool kNesterov>
class Momentum final : public FloatUpdater<Momentum<kNesterov>> {
 public:
  explicit Momentum(const MomentumOptions& options) : options_(options) {}
  int state_slots() const override { return 1; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    const MomentumTerms<T> terms{.rate = static_cast<T>(RateOf(run, options_.learning_rate)),
                                 .momentum = static_cast<T>(options_.momentum),
                                 .decay = static_cast<T>(options_.weight_decay)};
    if constexpr (kNesterov) {
      UpdatesOf<T>().nesterov(terms, ElementsOf(run));
    } else {
      UpdatesOf<T>().momentum(terms, ElementsOf(run));
    }
  }

 private:
  const MomentumOptions options_;
};

template <bool kNesterov>
absl::StatusOr<std::unique_ptr<Updater>> MakeWithMomentum(const char* name,
                                                          const UpdaterParameters& parameters) {
  MomentumOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters(name, parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"momentum", &options.momentum, kFraction},
                                         {"weight_decay", &options.weight_decay, kNotNegative}}));
  return std::make_unique<Momentum<kNesterov>>(options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeMomentum(const UpdaterParameters& parameters) {
  return MakeWithMomentum<false>("momentum", parameters);
}

absl::StatusOr<std::unique_ptr<Updater>> MakeNesterov(const UpdaterParameters& parameters) {
  return MakeWithMomentum<true>("nesterov", parameters);
}

}  // namespace leeway::ps
