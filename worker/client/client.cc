#include "worker/client/client.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"

namespace leeway::worker {

absl::StatusOr<std::unique_ptr<Worker>> Client::Connect(Config config, Session::World world) {
  if (config.role == Role::kUnknown) config.role = Role::kWorker;
  if (config.role != Role::kWorker) {
    return absl::InvalidArgumentError(absl::StrCat("a worker cannot connect with LEEWAY_ROLE '",
                                                   Name(config.role), "': it must be 'worker'"));
  }
  LEEWAY_RETURN_IF_ERROR(config.Validate());
  if (absl::Status viable = world.factory->Viable(); !viable.ok()) return viable;
  absl::StatusOr<std::shared_ptr<Session>> session = Session::Connect(config, std::move(world));
  LEEWAY_RETURN_IF_ERROR(session.status());
  return std::unique_ptr<Worker>(new Worker(std::make_unique<Client>(*std::move(session))));
}

absl::StatusOr<std::unique_ptr<Worker>> Client::ConnectWith(const Config& config,
                                                            runtime::Host* host,
                                                            van::Factory* factory) {
  Session::World world;
  world.host = host;
  world.factory = factory;
  return Connect(config, std::move(world));
}

}  // namespace leeway::worker
