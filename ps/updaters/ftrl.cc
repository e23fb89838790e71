// ftrl: FTRL-Proximal with per-coordinate rates and L1 and L2 regularisation (McMahan et al.,
// "Ad click prediction: a view from the trenches", 2013, algorithm 1).
//
//     σ = (√(n + g²) − √n) / α        z ← z + g − σ w        n ← n + g²
//     w ← 0                                                  where |z| ≤ λ₁
//     w ← −(z − sgn(z) λ₁) / ((β + √n) / α + λ₂)             elsewhere
//
// learning_rate α = 0.1, beta β = 1, l1 λ₁ = 0, l2 λ₂ = 0. State: z and n, from 0. The paper
// starts from w = 0; another initial value enters z with the first update. A push with
// learning_rate 0 changes nothing.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct FtrlOptions {
  double learning_rate = 0.1;
  double beta = 1;
  double l1 = 0;
  double l2 = 0;
};

class Ftrl final : public FloatUpdater<Ftrl> {
 public:
  explicit Ftrl(const FtrlOptions& options) : options_(options) {}
  int state_slots() const override { return 2; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    const T alpha = static_cast<T>(RateOf(run, options_.learning_rate));
    if (alpha == 0) return;
    UpdatesOf<T>().ftrl({.alpha = alpha,
                         .beta = static_cast<T>(options_.beta),
                         .l1 = static_cast<T>(options_.l1),
                         .l2 = static_cast<T>(options_.l2)},
                        ElementsOf(run));
  }

 private:
  const FtrlOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeFtrl(const UpdaterParameters& parameters) {
  FtrlOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters("ftrl", parameters,
                                        {{"learning_rate", &options.learning_rate, kPositive},
                                         {"beta", &options.beta, kNotNegative},
                                         {"l1", &options.l1, kNotNegative},
                                         {"l2", &options.l2, kNotNegative}}));
  return std::make_unique<Ftrl>(options);
}

}  // namespace leeway::ps
