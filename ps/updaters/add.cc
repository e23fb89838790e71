// add: the pushed value is added. Integers wrap around at the ends of their range.
//
//     w ← w + g
//
// No hyper-parameters.
#include <type_traits>

#include "ps/updaters/builtin.h"
#include "ps/updaters/kernel.h"
#include "ps/updaters/parameters.h"
#include "runtime/status_macros.h"

namespace leeway::ps {
namespace {

template <class T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // whose overflow is defined
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

class Add final : public AnyUpdater<Add> {
 public:
  template <class T>
  void Run(const UpdateRun<T>& run) const {
    T* __restrict w = run.value;
    const T* __restrict g = run.gradient;
    for (std::size_t i = 0; i < run.size; ++i) w[i] = Sum(w[i], g[i]);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Updater>> MakeAdd(const UpdaterParameters& parameters) {
  LEEWAY_RETURN_IF_ERROR(ReadParameters("add", parameters, {}));
  return std::make_unique<Add>();
}

}  // namespace leeway::ps
