// The plots of `leeway compression`, which matplotlib draws.
#ifndef LEEWAY_TOOLS_COMPRESSION_PLOTS_H_
#define LEEWAY_TOOLS_COMPRESSION_PLOTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway::tools {

// The Python program plots.py, which draws. Its arguments: the results' JSON, a folder.
extern const char kPlotsProgram[];

// Draws the results in the JSON file into SVG files in `folder`, and returns their paths.
// FAILED_PRECONDITION says why that is not possible: no Python, no matplotlib. Starts a process:
// call it only where launch::Supervise may be called.
absl::StatusOr<std::vector<std::string>> DrawPlots(const std::string& json,
                                                   const std::string& folder);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_COMPRESSION_PLOTS_H_
