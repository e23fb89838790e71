// What a command that is part of a cluster, or talks to one, goes by.
#ifndef LEEWAY_TOOLS_OPTIONS_ROLE_CONFIG_H_
#define LEEWAY_TOOLS_OPTIONS_ROLE_CONFIG_H_

#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "tools/options/commands.h"

namespace leeway::tools {

// The environment's settings, with the command's own over them, checked. An environment meant for
// another role is an error. Sets the log's level as they say.
absl::StatusOr<Config> ConfigFor(Role role, const RoleCommand& command);

// Whether the transport that the environment asks for can be used on this machine: what each of a
// cluster's processes would say for itself, said once and before any has started.
absl::Status CheckTransport();

}  // namespace leeway::tools

#endif  // LEEWAY_TOOLS_OPTIONS_ROLE_CONFIG_H_
