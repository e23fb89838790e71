// Shared libraries with updaters and request handlers (leeway/server.h says how one looks).
#ifndef LEEWAY_PS_PLUGINS_H_
#define LEEWAY_PS_PLUGINS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace leeway::ps {

// Loads each and calls its LeewayRegister, in order; they stay loaded. The first that fails stops
// it: NOT_FOUND or FAILED_PRECONDITION with the loader's reason and LEEWAY_PLUGINS.
absl::Status LoadPlugins(const std::vector<std::string>& paths);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_PLUGINS_H_
