#include "tests/support/local_cluster.h"

#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/control/server.h"
#include "runtime/loop/real_loop.h"
#include "scheduler/control/scheduler.h"
#include "van/rdma/rdma_transport.h"
#include "van/rdma/testing/fake_verbs.h"
#include "van/tcp/tcp_transport.h"
#include "van/zmq/zmq_transport.h"
#include "worker/client/client.h"

namespace leeway::tests {
namespace {

// Runs `body` on a loop and waits for its result. The task shares the promise: it is still inside
// set_value when the waiting thread goes on.
template <class Body>
auto On(runtime::Loop* loop, Body body) {
  using Result = decltype(body());
  auto promise = std::make_shared<std::promise<Result>>();
  std::future<Result> future = promise->get_future();
  loop->Post([promise, &body] { promise->set_value(body()); });
  return future.get();
}

std::unique_ptr<van::Factory> NewFactory(LocalCluster::Net net,
                                         const van::verbs::FakeFabric& fabric) {
  switch (net) {
    case LocalCluster::Net::kInproc:
      return van::NewZmqFactory(van::ZmqScheme::kInproc);
    case LocalCluster::Net::kZmqTcp:
      return van::NewZmqFactory(van::ZmqScheme::kTcp);
    case LocalCluster::Net::kRdma:
      return van::NewRdmaFactory(van::verbs::NewFakeProvider(fabric));
    case LocalCluster::Net::kTcp:
      break;
  }
  return van::NewTcpFactory();
}

}  // namespace

struct ServerProcess {
  std::promise<absl::Status> over;
  std::unique_ptr<ps::Server> server;
};

struct LocalCluster::State {
  Setup setup;
  std::unique_ptr<runtime::Host> host = runtime::NewRealHost();
  van::verbs::FakeFabric fabric;
  std::unique_ptr<van::Factory> factory;
  // Outlives the scheduler's loop, whose end may be reported after it has gone.
  std::promise<absl::Status> scheduler_over;
  std::unique_ptr<runtime::LoopRunner> scheduler_runner;
  std::unique_ptr<scheduler::Scheduler> scheduler;  // used on its runner's loop
  std::vector<std::unique_ptr<ServerProcess>> servers;
  std::string address;
};

LocalCluster::LocalCluster() : state_(std::make_unique<State>()) {}

LocalCluster::~LocalCluster() {
  State& state = *state_;
  state.servers.clear();
  if (state.scheduler_runner != nullptr) {
    On(state.scheduler_runner->loop(), [&state] { return state.scheduler.reset(), 0; });
  }
}

absl::StatusOr<std::unique_ptr<LocalCluster>> LocalCluster::Start(const Setup& setup) {
  auto cluster = std::unique_ptr<LocalCluster>(new LocalCluster);
  State& state = *cluster->state_;
  state.setup = setup;
  state.factory = NewFactory(setup.net, state.fabric);
  if (setup.wrap) state.factory = setup.wrap(std::move(state.factory));

  Config config = setup.config;
  config.num_servers = setup.servers;
  config.num_workers = setup.workers;
  config.role = Role::kScheduler;
  config.scheduler = state.factory->AnyAddress("127.0.0.1");
  state.scheduler_runner = state.host->Spawn("scheduler");
  runtime::Loop* loop = state.scheduler_runner->loop();
  const absl::Status started = On(loop, [&] {
    state.scheduler =
        std::make_unique<scheduler::Scheduler>(state.host.get(), loop, state.factory.get(), config);
    return state.scheduler->Start(
        [&state](absl::Status why) { state.scheduler_over.set_value(std::move(why)); });
  });
  if (!started.ok()) return started;
  state.address = On(loop, [&] { return state.scheduler->address(); });

  config.role = Role::kServer;
  config.scheduler = state.address;
  for (std::uint32_t i = 0; i < setup.servers; ++i) {
    auto process = std::make_unique<ServerProcess>();
    ps::Server::Setup server;
    server.config = config;
    server.host = state.host.get();
    server.factory = state.factory.get();
    server.options.test_only_never_hold = setup.servers_never_hold;
    process->server = std::make_unique<ps::Server>(std::move(server));
    process->server->Start(
        [raw = process.get()](absl::Status why) { raw->over.set_value(std::move(why)); });
    state.servers.push_back(std::move(process));
  }
  return cluster;
}

const std::string& LocalCluster::scheduler_address() const { return state_->address; }

std::string LocalCluster::SchedulerStatus() const {
  return On(state_->scheduler_runner->loop(), [this] { return state_->scheduler->StatusJson(); });
}

Config LocalCluster::WorkerConfig() const {
  Config config = state_->setup.config;
  config.role = Role::kWorker;
  config.scheduler = state_->address;
  config.num_servers = state_->setup.servers;
  config.num_workers = state_->setup.workers;
  const Net net = state_->setup.net;
  config.van = net == Net::kTcp ? "tcp" : net == Net::kRdma ? "rdma" : "zmq";
  return config;
}

absl::StatusOr<std::unique_ptr<Worker>> LocalCluster::Connect() { return Connect(WorkerConfig()); }

absl::StatusOr<std::unique_ptr<Worker>> LocalCluster::Connect(const Config& config) {
  return worker::Client::ConnectWith(config, state_->host.get(), state_->factory.get());
}

absl::Status LocalCluster::RunWorkers(const std::function<void(Worker*)>& body) {
  std::mutex mutex;
  absl::Status result;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < state_->setup.workers; ++i) {
    threads.emplace_back([&] {
      auto worker = Connect();
      if (worker.ok()) return body(worker->get());
      const std::lock_guard<std::mutex> lock(mutex);
      result.Update(worker.status());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

absl::Status LocalCluster::Finish() {
  absl::Status result = state_->scheduler_over.get_future().get();
  for (auto& process : state_->servers) result.Update(process->over.get_future().get());
  return result;
}

}  // namespace leeway::tests
