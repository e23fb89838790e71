// Settings that are set and mean nothing: most likely they are misspelt.
#ifndef LEEWAY_RUNTIME_CONFIG_CONFIG_NAMES_H_
#define LEEWAY_RUNTIME_CONFIG_CONFIG_NAMES_H_

#include <string>
#include <vector>

namespace leeway::runtime {

// For each of these names that starts as ours do (LEEWAY_) and is none of ours, a line that says
// so, and which of ours is like it.
std::vector<std::string> UnknownSettings(const std::vector<std::string>& names);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_CONFIG_CONFIG_NAMES_H_
