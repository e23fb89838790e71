// nesterov: gradient descent with Nesterov's momentum (Nesterov 1983), in the form of
// torch.optim.SGD(nesterov=True), which looks ahead from the values themselves.
//
//     d = g + λ w        v ← μ v + d        w ← w − η (d + μ v)
//
// learning_rate η = 0.001, momentum μ = 0.9, weight_decay λ = 0. State: v, from 0.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct NesterovOptions {
  double learning_rate = 1e-3;
  double momentum = 0.9;
  double weight_decay = 0;
};

class Nesterov final : public FloatUpdater<Nesterov> {
 public:
  explicit Nesterov(const NesterovOptions& options) : options_(options) {}
  int state_slots() const override { return 1; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    UpdatesOf<T>().nesterov({.rate = static_cast<T>(RateOf(run, options_.learning_rate)),
                             .momentum = static_cast<T>(options_.momentum),
                             .decay = static_cast<T>(options_.weight_decay)},
                            ElementsOf(run));
  }

 private:
  const NesterovOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeNesterov(const UpdaterParameters& parameters) {
  NesterovOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters("nesterov", parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"momentum", &options.momentum, kFraction},
                                         {"weight_decay", &options.weight_decay, kNotNegative}}));
  return std::make_unique<Nesterov>(options);
}

}  // namespace leeway::ps
