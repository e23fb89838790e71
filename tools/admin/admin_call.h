// Asking a running scheduler to do something that takes a while.
#ifndef LEEWAY_TOOLS_ADMIN_ADMIN_CALL_H_
#define LEEWAY_TOOLS_ADMIN_ADMIN_CALL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/config.h"

namespace leeway::tools {

// The JSON that the scheduler at Config::scheduler answers when it has done it, or why it has not.
// It may take as long as it likes, as long as it says now and then what it knows: that is given to
// `watch` (as `leeway status` shows it), on another thread.
absl::StatusOr<std::string> AskScheduler(const Config& config, const std::string& command,
                                         const std::vector<std::string>& arguments,
                                         std::function<void(const std::string& status)> watch);

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_ADMIN_ADMIN_CALL_H_
