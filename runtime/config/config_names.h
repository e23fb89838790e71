// UnknownSettings finds environment variables that look like settings of Leeway but are none, most
// likely because they are misspelt.
#ifndef LEEWAY_RUNTIME_CONFIG_CONFIG_NAMES_H_
#define LEEWAY_RUNTIME_CONFIG_CONFIG_NAMES_H_

#include <string>
#include <vector>

namespace leeway::runtime {

// Returns one line for each of `names` that starts with LEEWAY_ and is no setting. The line names
// the variable and the setting that is spelt most like it, if there is one.
std::vector<std::string> UnknownSettings(const std::vector<std::string>& names);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_CONFIG_CONFIG_NAMES_H_
