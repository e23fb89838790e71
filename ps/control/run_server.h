// RunServer, for programs that do more in the same process than to run a server (compat/).
#ifndef LEEWAY_PS_CONTROL_RUN_SERVER_H_
#define LEEWAY_PS_CONTROL_RUN_SERVER_H_

#include <functional>

#include "absl/status/status.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"

namespace leeway::ps {

// Called on the server's control loop. All are optional.
struct ServerEvents {
  // The scheduler has taken the server in.
  std::function<void(const proto::Welcome&)> on_welcome = {};
  // SIGTERM or SIGINT has come, for which the server is drained or stopped.
  std::function<void(int signal)> on_signal = {};
};

// As leeway::RunServer.
absl::Status RunServer(const Config& config, const ServerEvents& events);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_RUN_SERVER_H_
