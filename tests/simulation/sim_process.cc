#include "tests/simulation/sim_process.h"

#include <utility>

namespace leeway::simulation {

std::unique_ptr<van::Factory> SimWorkplace::NewFactory(const std::string& host) const {
  return rdma != nullptr ? rdma->NewFactory(host) : network->NewFactory(host);
}

SimProcess::SimProcess(const SimWorkplace& place, const std::string& host)
    : place_(place),
      host_(place.world->NewHost(host)),
      factory_(place.NewFactory(host)),
      runner_(host_->Spawn("main")) {}

void SimProcess::RunScheduler(const Config& config) {
  scheduler_ = std::make_unique<scheduler::Scheduler>(host_.get(), loop(), factory_.get(), config);
  loop()->Post([this] {
    const absl::Status started = scheduler_->Start([this](absl::Status status) {
      over_ = std::move(status);
      scheduler_.reset();
    });
    if (!started.ok()) over_ = started;
  });
}

void SimProcess::RunServer(const Config& config) {
  ps::Server::Setup setup;
  setup.config = config;
  setup.host = host_.get();
  setup.factory = factory_.get();
  setup.options = place_.data_options;
  setup.on_welcome = [this](const proto::Welcome& welcome) { node_ = welcome.node; };
  server_ = std::make_unique<ps::Server>(std::move(setup));
  server_->Start([this](absl::Status status) { over_ = std::move(status); });
}

void SimProcess::RunWorker(const Config& config) {
  core_ = std::make_unique<worker::Core>(worker::Core::Setup{
      .config = config, .host = host_.get(), .loop = loop(), .factory = factory_.get()});
}

}  // namespace leeway::simulation
