// assign: the pushed value replaces the old one.
//
//     w ← g
//
// Of several pushes that are combined, the last one wins. No hyper-parameters.
#include <algorithm>

#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

class Assign final : public AnyUpdater<Assign> {
 public:
  Combine combine() const override { return Combine::kLast; }

  template <class T>
  void Run(const UpdateRun<T>& run) const {
    std::copy_n(run.gradient, run.size, run.value);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeAssign(const UpdaterParameters& parameters) {
  LEEWAY_RETURN_IF_ERROR(ReadParameters("assign", parameters, {}));
  return std::make_unique<Assign>();
}

}  // namespace leeway::ps
