#include "van/sim/sim_network.h"

#include <algorithm>
#include <vector>

#include "van/session_van.h"
#include "van/sim/sim_transport.h"

namespace leeway::van {
namespace {

class SimFactory final : public Factory {
 public:
  SimFactory(std::shared_ptr<SimNetworkState> network, std::string host)
      : network_(std::move(network)), host_(std::move(host)) {}

  std::unique_ptr<Van> New(runtime::Loop* loop, const Identity& identity, const Limits& limits,
                           Handler* handler) override {
    return std::make_unique<SessionVan>(loop, identity, limits, handler,
                                        NewSimTransport(network_, host_, loop));
  }
  std::string AnyAddress(absl::string_view) const override {
    return "sim://" + host_ + "/" + std::to_string(network_->next_id++);
  }

 private:
  std::shared_ptr<SimNetworkState> network_;
  std::string host_;
};

}  // namespace

const LinkFaults& SimNetworkState::FaultsOf(const HostPair& link) const {
  const auto found = faults.find(link);
  return found == faults.end() ? default_faults : found->second;
}

absl::Duration SimNetworkState::Uniform(absl::Duration low, absl::Duration high) {
  if (high <= low) return low;
  return low + (high - low) * world->Uniform();
}

absl::Duration SimNetworkState::TravelTime(const HostPair& link, std::uint64_t bytes,
                                           absl::Time* last_arrival) {
  const LinkFaults& conditions = FaultsOf(link);
  const absl::Time now = world->Now();
  absl::Time leaves = now;
  if (conditions.bytes_per_second > 0) {
    absl::Time& busy = busy_until.try_emplace(link, now).first->second;
    leaves = busy = std::max(busy, now) +
                    absl::Seconds(static_cast<double>(bytes) / conditions.bytes_per_second);
  }
  const absl::Time arrives = std::max(leaves + Uniform(conditions.delay_min, conditions.delay_max),
                                      *last_arrival + absl::Nanoseconds(1));
  *last_arrival = arrives;
  return arrives - now;
}

void SimNetworkState::Schedule(absl::Duration delay, std::function<void(SimNetworkState&)> task) {
  world->Schedule(delay, [weak = weak_from_this(), task = std::move(task)] {
    if (const auto state = weak.lock()) task(*state);
  });
}

SimNetwork::SimNetwork(runtime::SimWorld* world)
    : state_(std::make_shared<SimNetworkState>(world)) {}

SimNetwork::~SimNetwork() = default;

std::unique_ptr<Factory> SimNetwork::NewFactory(const std::string& host_name) {
  return std::make_unique<SimFactory>(state_, host_name);
}

void SimNetwork::SetFaults(const LinkFaults& faults) { state_->default_faults = faults; }

void SimNetwork::SetFaults(const std::string& from_host, const std::string& to_host,
                           const LinkFaults& faults) {
  state_->faults[{from_host, to_host}] = faults;
}

void SimNetwork::Cut(const std::string& from_host, const std::string& to_host) {
  state_->cuts.insert({from_host, to_host});
}

void SimNetwork::Heal(const std::string& from_host, const std::string& to_host) {
  state_->cuts.erase({from_host, to_host});
}

void SimNetwork::HealAll() { state_->cuts.clear(); }

void SimNetwork::SetTap(Tap tap) { state_->tap = std::move(tap); }

void SimNetwork::Kill(const std::string& host_name) {
  std::vector<SimTransport*> dying;
  for (const auto& [id, transport] : state_->transports) {
    if (transport->host() == host_name) dying.push_back(transport);
  }
  for (SimTransport* transport : dying) transport->Die();
}

SimNetwork::Faulted SimNetwork::faulted() const { return state_->faulted; }

}  // namespace leeway::van
