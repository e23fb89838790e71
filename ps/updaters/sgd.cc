// sgd: stochastic gradient descent (Robbins and Monro 1951), with optional L2 weight decay λ.
//
//     w ← w − η (g + λ w)
//
// learning_rate η = 0.001, weight_decay λ = 0: names and defaults as in torch.optim.SGD.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct SgdOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;
};

class Sgd final : public FloatUpdater<Sgd> {
 public:
  explicit Sgd(const SgdOptions& options) : options_(options) {}

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    UpdatesOf<T>().sgd({.rate = static_cast<T>(RateOf(run, options_.learning_rate)),
                        .decay = static_cast<T>(options_.weight_decay)},
                       ElementsOf(run));
  }

 private:
  const SgdOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeSgd(const UpdaterParameters& parameters) {
  SgdOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters("sgd", parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"weight_decay", &options.weight_decay, kNotNegative}}));
  return std::make_unique<Sgd>(options);
}

}  // namespace leeway::ps
