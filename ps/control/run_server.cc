#include "ps/control/run_server.h"

#include <signal.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "leeway/server.h"
#include "node/plugins.h"
#include "ps/control/own_host.h"
#include "ps/control/server.h"
#include "ps/control/stop_signals.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "runtime/memory/machine_memory.h"
#include "van/mixed/mixed_van.h"

namespace leeway {
namespace {

// The outcome, handed from the control loop to the thread that waits.
class Outcome {
 public:
  void Set(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    is_set_.notify_all();  // under the lock: the waiter destroys this as soon as it has it
  }
  absl::Status Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_set_.wait(lock, [this] { return status_.has_value(); });
    return *status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable is_set_;
  std::optional<absl::Status> status_;
};

// The rest is for messages, what is held, replication and copies.
void LimitTables(Config* config) {
  if (config->table_bytes_max != 0) return;
  const runtime::MemoryLimit limit = runtime::MachineMemory();
  config->table_bytes_max = limit.bytes / 5 * 4;
  runtime::LogInfo("tables may take ", config->table_bytes_max >> 20, " MiB, four fifths of ",
                   limit.from, " (LEEWAY_TABLE_BYTES_MAX)");
}

}  // namespace

absl::Status RunServer(const Config& config) { return ps::RunServer(config, {}); }

absl::Status ps::RunServer(const Config& config, const ServerEvents& events) {
  Config own = config;
  own.role = Role::kServer;
  LEEWAY_RETURN_IF_ERROR(own.Validate());
  if (auto level = runtime::ParseLogLevel(own.log_level)) runtime::SetLogLevel(*level);
  LEEWAY_RETURN_IF_ERROR(node::LoadPlugins(own.plugins));
  LimitTables(&own);

  const std::unique_ptr<runtime::Host> host =
      runtime::NewRealHost(absl::Microseconds(own.busy_poll_us));
  const std::unique_ptr<van::Factory> factory = van::NewFactory(config);
  if (absl::Status viable = factory->Viable(); !viable.ok()) return viable;
  LEEWAY_RETURN_IF_ERROR(ps::AwaitOwnHost(&own));
  auto server = std::make_unique<ps::Server>(
      ps::Server::Setup{.config = own,
                        .host = host.get(),
                        .factory = factory.get(),
                        .options = {},
                        .on_welcome = [&events](const proto::Welcome& welcome) {
                          runtime::SetLogName(absl::StrCat("server ", welcome.rank));
                          if (events.on_welcome != nullptr) events.on_welcome(welcome);
                        }});
  LEEWAY_ASSIGN_OR_RETURN(
      std::unique_ptr<ps::StopSignals> signals,
      ps::StopSignals::Install([server = server.get(), &events](int signal) {
        if (events.on_signal != nullptr) events.on_signal(signal);
        if (signal == SIGTERM) {
          server->Drain(absl::CancelledError("the server was stopped by SIGTERM"));
        } else {
          server->Stop(absl::CancelledError("the server was stopped by SIGINT"));
        }
      }));

  Outcome outcome;
  runtime::Loop* control = server->control_loop();
  control->Post([control, &signals] { control->AddSource(signals.get()); });
  server->Start([&, control](absl::Status why) {
    control->RemoveSource(signals.get());
    outcome.Set(std::move(why));
  });
  absl::Status result = outcome.Wait();
  server.reset();  // its loops, before what they use
  return result;
}

}  // namespace leeway
