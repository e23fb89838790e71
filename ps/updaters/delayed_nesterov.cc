// delayed_nesterov: Nesterov's momentum for the outer step of asynchronous local SGD, where the
// momentum is moved only once in N pushes (Liu et al., "Asynchronous Local-SGD Training for
// Language Modeling", 2024, arXiv 2401.09135, algorithm 3).
//
//     each push, the t-th, with the pseudo-gradient g:
//     b ← b + g
//     if N divides t:   v ← μ v + b / N,  w ← w − η ((1 − cN + c) μ v + g / N),  b ← 0
//     otherwise:                          w ← w − η (c μ v + g / N)
//
// With N = 1 and c = 0 it is Nesterov's momentum: w ← w − η (g + μ v), v ← μ v + g.
//
// learning_rate η = 0.7, momentum μ = 0.9, delay N = 1 (1 to 65536, the number of workers as a
// rule), activation c = 0 (0 to 1/N). State: v and b, from 0. t counts the updates of a block or
// row.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

struct DelayedNesterovOptions {
  double learning_rate = 0.7;
  double momentum = 0.9;
  double delay = 1;
  double activation = 0;
};

class DelayedNesterov final : public FloatUpdater<DelayedNesterov> {
 public:
  explicit DelayedNesterov(const DelayedNesterovOptions& options) : options_(options) {}
  int state_slots() const override { return 2; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    const bool moves = run.step % static_cast<std::uint64_t>(options_.delay) == 0;
    const auto rate = static_cast<T>(RateOf(run, options_.learning_rate));
    const auto momentum = static_cast<T>(options_.momentum);
    const auto share = static_cast<T>(1 / options_.delay);
    const double c = options_.activation;
    const auto ahead = static_cast<T>((moves ? 1 - c * options_.delay + c : c) * options_.momentum);
    T* const velocity = run.state[0];
    T* const buffer = run.state[1];
    for (std::size_t i = 0; i < run.size; ++i) {
      const T gradient = run.gradient[i];
      buffer[i] += gradient;
      if (moves) {
        velocity[i] = momentum * velocity[i] + share * buffer[i];
        buffer[i] = 0;
      }
      run.value[i] -= rate * (ahead * velocity[i] + share * gradient);
    }
  }

 private:
  const DelayedNesterovOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeDelayedNesterov(const UpdaterParameters& parameters) {
  DelayedNesterovOptions options;
  LEEWAY_RETURN_IF_ERROR(ReadParameters("delayed_nesterov", parameters,
                                        {{"learning_rate", &options.learning_rate, kNotNegative},
                                         {"momentum", &options.momentum, kFraction},
                                         {"delay", &options.delay, kNotNegative},
                                         {"activation", &options.activation, kNotNegative}}));
  const bool counts =
      options.delay >= 1 && options.delay <= 65536 && options.delay == std::floor(options.delay);
  if (!counts || options.activation > 1 / options.delay) {
    return absl::InvalidArgumentError(absl::StrCat(
        "updater delayed_nesterov: delay is ", options.delay, " and activation ",
        options.activation, ", may be a whole number from 1 to 65536, and up to 1 / delay"));
  }
  return std::make_unique<DelayedNesterov>(options);
}

}  // namespace leeway::ps
