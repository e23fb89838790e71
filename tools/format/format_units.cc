#include "tools/format/format_units.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace leeway::tools {
namespace {

// `units`: of 1, step, step², …
template <std::size_t kUnits>
std::string InUnits(double value, double step, const char* const (&units)[kUnits]) {
  if (!std::isfinite(value)) return "?";
  std::size_t unit = 0;
  // A value that would be rounded to a thousand gets the next unit.
  while (unit + 1 < kUnits && std::abs(value) >= (step == 1000 ? 999.5 : 1023.5)) {
    value /= step;
    ++unit;
  }
  const bool fraction = unit > 0 && std::abs(value) < 9.95;
  return absl::StrFormat("%.*f%s", fraction ? 1 : 0, value, units[unit]);
}

}  // namespace

std::string FormatBytes(double bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return InUnits(bytes, 1024, kUnits);
}

std::string Megabytes(std::uint64_t bytes) {
  return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
}

std::string FormatCount(double count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T"};
  return InUnits(count, 1000, kUnits);
}

std::string FormatTime(absl::Duration duration) {
  const auto seconds = std::max<std::int64_t>(absl::ToInt64Seconds(duration), 0);
  if (seconds < 60) return absl::StrCat(seconds, "s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, "m ", seconds % 60, "s");
  if (seconds < 86400) return absl::StrCat(seconds / 3600, "h ", seconds / 60 % 60, "m");
  return absl::StrCat(seconds / 86400, "d ", seconds / 3600 % 24, "h");
}

}  // namespace leeway::tools
