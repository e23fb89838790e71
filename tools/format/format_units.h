// FormatBytes, FormatCount and FormatTime format numbers for people, in tables.
#ifndef LEEWAY_TOOLS_FORMAT_FORMAT_UNITS_H_
#define LEEWAY_TOOLS_FORMAT_FORMAT_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace leeway::tools {

// "0 B", "512 B", "1.5 KiB", "23 MiB", "1.2 GiB": three digits at most.
std::string FormatBytes(double bytes);
// "0.0 MB", "1.5 MB", "3400.0 MB".
std::string Megabytes(std::uint64_t bytes);
// "0", "12", "3.4k", "120k", "1.2M": three digits at most.
std::string FormatCount(double count);
// The two largest units: "0s", "34s", "5m 12s", "2h 3m", "4d 11h".
std::string FormatTime(absl::Duration duration);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_FORMAT_FORMAT_UNITS_H_
