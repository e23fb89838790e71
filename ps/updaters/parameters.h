// The hyper-parameters of updaters: read by name into an updater's options, with their ranges.
#ifndef LEEWAY_PS_UPDATERS_PARAMETERS_H_
#define LEEWAY_PS_UPDATERS_PARAMETERS_H_

#include <initializer_list>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "leeway/updater.h"

namespace leeway::ps {

// Infinite and NaN values are outside every range.
struct Range {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;  // whether `low` itself is out of range
  bool high_open = true;
};
inline constexpr Range kNotNegative{};
inline constexpr Range kPositive{.low_open = true};
inline constexpr Range kFraction{.high = 1};  // [0, 1)

struct Parameter {
  absl::string_view name;
  double* value;  // holds the default
  Range range;
};

// Writes the given values over the defaults. INVALID_ARGUMENT names the updater and the
// parameter, and lists the known ones or shows the range.
absl::Status ReadParameters(absl::string_view updater, const UpdaterParameters& given,
                            std::initializer_list<Parameter> known);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_UPDATERS_PARAMETERS_H_
