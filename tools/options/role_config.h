// ConfigFor makes the settings of a command that is part of a cluster, or talks to one.
#ifndef LEEWAY_TOOLS_OPTIONS_ROLE_CONFIG_H_
#define LEEWAY_TOOLS_OPTIONS_ROLE_CONFIG_H_

#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "tools/options/commands.h"

namespace leeway::tools {

// The environment's settings, overridden by the command's options, and checked. An environment for
// another role is an error. Sets the log level.
absl::StatusOr<Config> ConfigFor(Role role, const RoleCommand& command);

// OK if the transport of the environment's settings can be used on this machine. Reports the error
// once, before processes of a cluster start and each would report it.
absl::Status CheckTransport();

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_OPTIONS_ROLE_CONFIG_H_
