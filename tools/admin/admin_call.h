// AskScheduler has a running scheduler carry out a command that may take a while. Blocks.
#ifndef LEEWAY_TOOLS_ADMIN_ADMIN_CALL_H_
#define LEEWAY_TOOLS_ADMIN_ADMIN_CALL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/config.h"

namespace leeway::tools {

// Returns the JSON that the scheduler at Config::scheduler answers once it has carried out the
// command, or its error. There is no limit to how long that takes, as long as the scheduler sends
// its status now and then: `watch` gets it (as `leeway status` shows it), on another thread.
absl::StatusOr<std::string> AskScheduler(const Config& config, const std::string& command,
                                         const std::vector<std::string>& arguments,
                                         std::function<void(const std::string& status)> watch);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_ADMIN_ADMIN_CALL_H_
