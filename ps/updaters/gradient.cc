// gradient: the value is what the pushes of one clock add up to (or their mean:
// TableSpec::aggregate), for workers that update the parameters themselves.
//
//     w ← Σ gᵢ
//
// Only for BSP tables. learning_rate = 1 changes nothing here: by how it changes from clock to
// clock error feedback weighs what was dropped (dist-EF-SGD, Zheng et al., NeurIPS 2019).
#include <algorithm>

#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

class Gradient final : public AnyUpdater<Gradient> {
 public:
  template <class T>
  void Run(const UpdateRun<T>& run) const {
    std::copy_n(run.gradient, run.size, run.value);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeGradient(const UpdaterParameters& parameters) {
  double learning_rate = 1;
  LEEWAY_RETURN_IF_ERROR(
      ReadParameters("gradient", parameters, {{"learning_rate", &learning_rate, kNotNegative}}));
  return std::make_unique<Gradient>();
}

}  // namespace leeway::ps
