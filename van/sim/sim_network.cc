#include "van/sim/sim_network.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/encoding/encoding.h"
#include "van/session/session_van.h"
#include "van/sim/sim_transport.h"

namespace leeway::van {
namespace {

absl::Duration TimeFor(std::uint64_t bytes, double bytes_per_second) {
  if (bytes_per_second <= 0) return absl::ZeroDuration();
  return absl::Seconds(static_cast<double>(bytes) / bytes_per_second);
}

}  // namespace

Overheard::Overheard(std::string from_host, std::string to_host, const Way& by, Message content)
    : from(std::move(from_host)), to(std::move(to_host)), way(by), raw(std::move(content)) {
  auto decoded = proto::Decode(raw.header, {raw.payload.data(), raw.payload.size()});
  if (decoded.ok()) message = *std::move(decoded);
}

absl::string_view Overheard::name() const {
  return std::holds_alternative<std::monostate>(message) ? "?" : proto::NameOf(message);
}

const LinkFaults& SimNetworkState::FaultsOf(const HostPair& link) const {
  const auto found = faults.find(link);
  return found == faults.end() ? default_faults : found->second;
}

absl::Duration SimNetworkState::Uniform(absl::Duration low, absl::Duration high) {
  if (high <= low) return low;
  return low + (high - low) * world->Uniform();
}

SimNetworkState::Trip SimNetworkState::Leave(const HostPair& link, std::uint64_t bytes,
                                             const SimConnection::End& from,
                                             SimConnection::End* to) {
  const LinkFaults& conditions = FaultsOf(link);
  const absl::Time now = world->Now();
  absl::Time leaves = now;
  if (conditions.bytes_per_second > 0) {
    absl::Time& busy = busy_until.try_emplace(link, now).first->second;
    leaves = busy = std::max(busy, now) + TimeFor(bytes, conditions.bytes_per_second);
  }
  const double speed = SpeedOf(*from.nic).egress_bytes_per_second;
  const absl::Duration on_the_wire = TimeFor(bytes, speed);
  if (speed > 0) {
    leaves = std::max(leaves, from.nic->egress_busy_until);
    from.nic->egress_busy_until = leaves + on_the_wire;
  }
  const absl::Time first = std::max(leaves + Uniform(conditions.delay_min, conditions.delay_max),
                                    to->last_arrival + absl::Nanoseconds(1));
  to->last_arrival = first + on_the_wire;
  return {first - now, to->last_arrival - now};
}

void SimNetworkState::Arrive(const Trip& trip, std::uint64_t bytes, SimNic* card,
                             std::function<void(SimNetworkState&)> task) {
  if (SpeedOf(*card).ingress_bytes_per_second <= 0) return Schedule(trip.last, std::move(task));
  // The order at the receiving card is decided when a message arrives there, not when it leaves.
  Schedule(trip.first, [trip, bytes, card, task = std::move(task)](SimNetworkState& network) {
    const absl::Time now = network.world->Now();
    card->ingress_busy_until = std::max(card->ingress_busy_until, now) +
                               TimeFor(bytes, network.SpeedOf(*card).ingress_bytes_per_second);
    network.Schedule(std::max(card->ingress_busy_until - now, trip.last - trip.first), task);
  });
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
  return NewSessionFactory(
      [network = state_, host_name](runtime::Loop* loop, const Limits&) {
        return NewSimTransport(network, host_name, loop);
      },
      [network = state_, host_name](absl::string_view) {
        return absl::StrCat("sim://", host_name, "/", network->next_id++);
      });
}

void SimNetwork::SetFaults(const LinkFaults& faults) { state_->default_faults = faults; }

void SimNetwork::SetFaults(const std::string& from_host, const std::string& to_host,
                           const LinkFaults& faults) {
  state_->faults[{from_host, to_host}] = faults;
}

void SimNetwork::SetNics(const Nic& nic) { state_->nic = nic; }
void SimNetwork::SetNic(const std::string& host_name, const Nic& nic) {
  state_->nics[host_name].own = nic;
}

SimNetwork::Traffic SimNetwork::TrafficOf(const std::string& host_name) const {
  const auto found = state_->nics.find(host_name);
  return found == state_->nics.end() ? Traffic() : found->second.traffic;
}

std::size_t SimNetwork::ConnectionsOf(const std::string& host_name) const {
  std::size_t ends = 0;
  for (const auto& [id, connection] : state_->connections) {
    for (const SimConnection::End& end : connection.ends) {
      ends += end.transport != nullptr && end.host == host_name ? 1 : 0;
    }
  }
  return ends;
}

void SimNetwork::Cut(const std::string& from_host, const std::string& to_host) {
  state_->cuts.insert({from_host, to_host});
}

void SimNetwork::Heal(const std::string& from_host, const std::string& to_host) {
  state_->cuts.erase({from_host, to_host});
}

void SimNetwork::HealAll() { state_->cuts.clear(); }

void SimNetwork::SetTap(Tap tap) { state_->tap = std::move(tap); }

void SimNetwork::SetDirector(Director director) { state_->director = std::move(director); }

void SimNetwork::Kill(const std::string& host_name) {
  std::vector<SimTransport*> dying;
  for (const auto& [id, transport] : state_->transports) {
    if (transport->host() == host_name) dying.push_back(transport);
  }
  for (SimTransport* transport : dying) transport->Die();
}

void SimNetwork::Break(const std::string& one_host, const std::string& other_host) {
  for (const auto& [id, connection] : state_->connections) {
    const std::string& from = connection.ends[0].host;
    const std::string& to = connection.ends[1].host;
    if ((from == one_host && to == other_host) || (from == other_host && to == one_host)) {
      SimTransport::Break(*state_, 2 * id);
    }
  }
}

SimNetwork::Faulted SimNetwork::faulted() const { return state_->faulted; }

}  // namespace leeway::van
