// add: the pushed value is added. Integers wrap around at the ends of their range, which is counted
// or refused (TableSpec::nonfinite).
//
//     w ← w + g
//
// No hyper-parameters.
#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/base/status_macros.h"

namespace leeway::ps {
namespace {

class Add final : public AnyUpdater<Add> {
 public:
  template <class T>
  void Run(const UpdateRun<T>& run) const {
    UpdatesOf<T>().add(ElementsOf(run));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeAdd(const UpdaterParameters& parameters) {
  LEEWAY_RETURN_IF_ERROR(ReadParameters("add", parameters, {}));
  return std::make_unique<Add>();
}

bool OnlyAdds(const Updater& updater) { return dynamic_cast<const Add*>(&updater) != nullptr; }

}  // namespace leeway::ps
