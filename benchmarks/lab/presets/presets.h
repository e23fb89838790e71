// The experiments that are part of the program: the files of this folder, as the build found them.
#ifndef LEEWAY_BENCHMARKS_LAB_PRESETS_PRESETS_H_
#define LEEWAY_BENCHMARKS_LAB_PRESETS_PRESETS_H_

#include <string_view>
#include <utility>
#include <vector>

namespace leeway::lab {

// Name and text, by name.
const std::vector<std::pair<std::string_view, std::string_view>>& Presets();

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_PRESETS_PRESETS_H_
