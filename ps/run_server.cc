#include <signal.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "leeway/server.h"
#include "ps/plugins.h"
#include "ps/server.h"
#include "ps/stop_signals.h"
#include "runtime/log.h"
#include "runtime/real_loop.h"
#include "runtime/status_macros.h"
#include "van/zmq/zmq_van.h"

namespace leeway {

absl::Status RunServer(const Config& config) {
  Config own = config;
  own.role = Role::kServer;
  LEEWAY_RETURN_IF_ERROR(own.Validate());
  if (auto level = runtime::ParseLogLevel(own.log_level)) runtime::SetLogLevel(*level);
  LEEWAY_RETURN_IF_ERROR(ps::LoadPlugins(own.plugins));

  const std::unique_ptr<runtime::Host> host = runtime::NewRealHost();
  const std::unique_ptr<van::Factory> factory = van::NewZmqFactory();
  auto server = std::make_unique<ps::Server>(
      ps::Server::Setup{.config = own,
                        .host = host.get(),
                        .factory = factory.get(),
                        .options = {},
                        .on_welcome = [](const proto::Welcome& welcome) {
                          runtime::SetLogName(absl::StrCat("server ", welcome.rank));
                        }});
  LEEWAY_ASSIGN_OR_RETURN(
      std::unique_ptr<ps::StopSignals> signals, ps::StopSignals::Install([&server](int signal) {
        server->Stop(absl::CancelledError(
            absl::StrCat("the server was stopped by ", signal == SIGINT ? "SIGINT" : "SIGTERM")));
      }));

  absl::Notification done;
  absl::Status result;
  runtime::Loop* control = server->control_loop();
  control->Post([control, &signals] { control->AddSource(signals.get()); });
  server->Start([&, control](absl::Status why) {
    control->RemoveSource(signals.get());
    result = std::move(why);
    done.Notify();
  });
  done.WaitForNotification();
  server.reset();
  return result;
}

}  // namespace leeway
