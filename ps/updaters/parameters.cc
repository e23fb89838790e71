#include "ps/updaters/parameters.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace leeway::ps {
namespace {

bool Contains(const Range& range, double value) {
  if (!std::isfinite(value)) return false;
  if (range.low_open ? value <= range.low : value < range.low) return false;
  return range.high_open ? value < range.high : value <= range.high;
}

std::string ToString(const Range& range) {
  return absl::StrCat(range.low_open ? "(" : "[", range.low, ", ", range.high,
                      range.high_open ? ")" : "]");
}

std::string Known(std::initializer_list<Parameter> known) {
  if (known.size() == 0) return "it has none";
  return absl::StrCat("it has ", absl::StrJoin(known, ", ", [](std::string* out, const auto& p) {
                        absl::StrAppend(out, p.name);
                      }));
}

}  // namespace

absl::Status ReadParameters(absl::string_view updater, const UpdaterParameters& given,
                            std::initializer_list<Parameter> known) {
  for (const auto& [name, value] : given) {
    const auto parameter = std::find_if(known.begin(), known.end(),
                                        [&name = name](const auto& p) { return p.name == name; });
    if (parameter == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "updater '", updater, "' has no hyper-parameter '", name, "'; ", Known(known)));
    }
    if (!Contains(parameter->range, value)) {
      return absl::InvalidArgumentError(absl::StrCat("updater '", updater, "': ", name, " is ",
                                                     value, ", but must be in ",
                                                     ToString(parameter->range)));
    }
    *parameter->value = value;
  }
  return absl::OkStatus();
}

}  // namespace leeway::ps
