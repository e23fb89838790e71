#include "tests/simulation/sim_cluster.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::simulation {
namespace {

constexpr std::uint32_t kRdmaSchedulerPort = 7000;

}  // namespace

SimCluster::SimCluster(const Setup& setup)
    : config_(setup.config),
      spare_servers_(setup.spare_servers),
      world_(setup.seed),
      network_(&world_),
      rdma_(setup.over_rdma ? std::make_unique<SimRdma>(&world_) : nullptr),
      place_{.world = &world_,
             .network = &network_,
             .rdma = rdma_.get(),
             .data_options = setup.data_options} {
  config_.scheduler = SchedulerAddress();
}

std::string SimCluster::SchedulerAddress() const {
  if (rdma_ != nullptr) {
    return absl::StrCat("tcp://127.0.0.1:", kRdmaSchedulerPort + scheduler_moves_);
  }
  return absl::StrCat("sim://", HostName(Role::kScheduler, 0), "/", scheduler_moves_);
}

void SimCluster::MoveScheduler() {
  ++scheduler_moves_;
  config_.scheduler = SchedulerAddress();
}

// Workers first: memory of a script may be exported by servers.
SimCluster::~SimCluster() {
  while (!processes_.empty()) processes_.erase(std::prev(processes_.end()));
}

std::string SimCluster::HostName(Role role, std::uint32_t rank) {
  if (role == Role::kScheduler) return std::string(Name(role));
  return absl::StrCat(Name(role), rank);
}

std::vector<std::string> SimCluster::HostNames() const {
  std::vector<std::string> names = {HostName(Role::kScheduler, 0)};
  for (std::uint32_t i = 0; i < server_hosts(); ++i) {
    names.push_back(HostName(Role::kServer, i));
  }
  for (std::uint32_t i = 0; i < config_.num_workers; ++i) {
    names.push_back(HostName(Role::kWorker, i));
  }
  return names;
}

SimProcess* SimCluster::Start(Role role, std::uint32_t rank) {
  const std::string host = HostName(role, rank);
  Config config = config_;
  config.role = role == Role::kReader ? Role::kWorker : role;
  config.read_only = role == Role::kReader;
  if (role == Role::kServer || role == Role::kWorker) config.rank = rank;
  config.elastic = role == Role::kServer && rank >= config_.num_servers;
  std::unique_ptr<SimProcess>& process = processes_[host];
  process = std::make_unique<SimProcess>(place_, host);
  if (role == Role::kScheduler) process->RunScheduler(config);
  if (role == Role::kServer) process->RunServer(config);
  if (config.role == Role::kWorker) process->RunWorker(config);
  return process.get();
}

void SimCluster::Kill(const std::string& host) {
  world_.Kill(host);
  if (rdma_ != nullptr) {
    rdma_->Kill(host);
  } else {
    network_.Kill(host);
  }
  processes_[host].reset();
}

SimProcess* SimCluster::Find(const std::string& host) const {
  const auto found = processes_.find(host);
  return found == processes_.end() ? nullptr : found->second.get();
}

bool SimCluster::WasKilled(const std::string& host) const {
  const auto found = processes_.find(host);
  return found != processes_.end() && found->second == nullptr;
}

void SimCluster::SetTap(van::SimNetwork::Tap tap) {
  if (rdma_ != nullptr) {
    rdma_->SetTap(std::move(tap));
  } else {
    network_.SetTap(std::move(tap));
  }
}

bool SimCluster::RunUntil(const std::function<bool()>& done, absl::Duration limit) {
  return world_.RunUntil(done, limit).ok();
}

}  // namespace leeway::simulation
