#include "cluster/cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "ps/control/server.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "scheduler/control/scheduler.h"
#include "van/mixed/mixed_van.h"
#include "van/tcp/tcp_transport.h"
#include "van/zmq/zmq_transport.h"
#include "worker/client/client.h"

namespace leeway::bench {
namespace {

// A port that was free when it was tried.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  bind(fd, generic, size);
  getsockname(fd, generic, &size);
  close(fd);
  return ntohs(address.sin_port);
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  runtime::LogError(status.message());
  return 1;
}

int RunServerOver(const std::string& transport, Config config) {
  config.role = Role::kServer;
  const absl::StatusOr<std::unique_ptr<van::Factory>> factory = FactoryFor(transport);
  if (!factory.ok()) return ExitCodeOf(factory.status());
  const std::unique_ptr<runtime::Host> host =
      runtime::NewRealHost(absl::Microseconds(config.busy_poll_us));
  ps::Server server({.config = config,
                     .host = host.get(),
                     .factory = factory->get(),
                     .options = {},
                     .on_welcome = nullptr});
  std::promise<absl::Status> over;
  server.Start([&](absl::Status why) { over.set_value(std::move(why)); });
  return ExitCodeOf(over.get_future().get());
}

bool IsRdma(const std::string& transport) {
  return transport == "rdma" || transport == "rdma_lent";
}

}  // namespace

bool Allocates(const std::string& transport) {
  return transport == "shm_lent" || transport == "rdma_lent";
}

absl::StatusOr<std::unique_ptr<van::Factory>> FactoryFor(const std::string& transport) {
  if (transport == "tcp") return van::NewTcpFactory();
  if (transport == "zmq") return van::NewZmqFactory(van::ZmqScheme::kTcp);
  if (transport == "ipc") return van::NewZmqFactory(van::ZmqScheme::kIpc);
  if (transport == "shm" || IsRdma(transport) || Allocates(transport)) {
    Config config;
    config.van = IsRdma(transport) ? "rdma" : "shm";
    return van::NewFactory(config);
  }
  return absl::InvalidArgumentError(absl::StrCat("this build has no ", transport, " van"));
}

Cluster::Cluster(const ClusterShape& shape) {
  // Settings from the environment, so that their effect can be measured.
  if (absl::StatusOr<Config> set = Config::FromEnvironment(); set.ok()) config_ = *set;
  config_.scheduler = absl::StrCat(shape.scheduler_host, ":", FreePort());
  config_.num_servers = static_cast<std::uint32_t>(shape.servers);
  config_.num_workers = static_cast<std::uint32_t>(shape.workers);
  config_.server_threads = static_cast<std::uint32_t>(shape.server_threads);
  config_.connect_timeout = absl::Seconds(30);
  config_.request_timeout = absl::Seconds(60);
  config_.log_level = "warning";
  // The scheduler's transport over TCP.
  config_.van = shape.transport == "zmq" || shape.transport == "ipc" ? "zmq" : "auto";
  if (IsRdma(shape.transport)) config_.van = "rdma";
  runtime::SetLogLevel(*runtime::ParseLogLevel(config_.log_level));
  scheduler_ = Child::Fork([this] {
    Config config = config_;
    config.role = Role::kScheduler;
    return ExitCodeOf(scheduler::RunScheduler(config));
  });
  for (int i = 0; i < shape.servers; ++i) {
    servers_.push_back(Child::Fork([&] {
      if (shape.place_server) {
        if (const absl::Status placed = shape.place_server(); !placed.ok())
          return ExitCodeOf(placed);
      }
      Config config = config_;
      config.host = shape.server_host;
      return RunServerOver(shape.transport, config);
    }));
  }
  config_.role = Role::kWorker;
}

std::vector<pid_t> Cluster::servers() const {
  std::vector<pid_t> pids;
  for (const Child& server : servers_) pids.push_back(server.pid());
  return pids;
}

absl::StatusOr<ClusterWorker> ClusterWorker::Connect(const Config& config,
                                                     const std::string& transport) {
  ClusterWorker worker;
  worker.host_ = runtime::NewRealHost(absl::Microseconds(config.busy_poll_us));
  LEEWAY_ASSIGN_OR_RETURN(worker.factory_, FactoryFor(transport));
  LEEWAY_ASSIGN_OR_RETURN(worker.worker_, worker::Client::ConnectWith(config, worker.host_.get(),
                                                                      worker.factory_.get()));
  return worker;
}

}  // namespace leeway::bench
