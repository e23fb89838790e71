// SimNetworkState is the state of the simulated network: hosts, the links between them, and
// connections. One thread, that of the SimWorld.
#ifndef LEEWAY_VAN_SIM_SIM_NETWORK_H_
#define LEEWAY_VAN_SIM_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"

namespace leeway::van {

class SimTransport;

// The state of a host's network card.
struct SimNic {
  std::optional<Nic> own;  // instead of that of every host
  absl::Time egress_busy_until = absl::InfinitePast();
  absl::Time ingress_busy_until = absl::InfinitePast();
  SimNetwork::Traffic traffic;
};

// A connection's two ends; the one that dialled is first. A ConnId is twice the connection's id
// plus the index of the end.
struct SimConnection {
  struct End {
    // Null before it is established, after its close, and when its host is dead.
    SimTransport* transport = nullptr;
    std::string host;
    SimNic* nic = nullptr;  // the host's card
    // Messages arrive at this end in the order in which they left the other one.
    absl::Time last_arrival = absl::InfinitePast();
  };
  End ends[2];
};

struct SimNetworkState : std::enable_shared_from_this<SimNetworkState> {
  using HostPair = std::pair<std::string, std::string>;  // from host, to host

  explicit SimNetworkState(runtime::SimWorld* w) : world(w) {}

  const LinkFaults& FaultsOf(const HostPair& link) const;
  const Nic& SpeedOf(const SimNic& card) const { return card.own ? *card.own : nic; }
  bool IsCut(const HostPair& link) const { return cuts.contains(link); }
  // The times from now until the first and the last byte arrive at the other host.
  struct Trip {
    absl::Duration first, last;
  };
  // For `bytes` bytes that leave now, in order behind what left before.
  Trip Leave(const HostPair& link, std::uint64_t bytes, const SimConnection::End& from,
             SimConnection::End* to);
  // Runs `task` when the receiving card has taken the bytes, unless the network has been destroyed.
  void Arrive(const Trip& trip, std::uint64_t bytes, SimNic* nic,
              std::function<void(SimNetworkState&)> task);
  absl::Duration Uniform(absl::Duration low, absl::Duration high);
  bool Strikes(double probability) { return probability > 0 && world->Uniform() < probability; }
  // Runs `task` after a delay, unless the network has been destroyed.
  void Schedule(absl::Duration delay, std::function<void(SimNetworkState&)> task);

  runtime::SimWorld* world;
  LinkFaults default_faults;
  std::map<HostPair, LinkFaults> faults;
  std::map<HostPair, absl::Time> busy_until;  // of links with a bandwidth
  std::set<HostPair> cuts;
  Nic nic;                                         // of every host without its own
  std::map<std::string, SimNic> nics;              // by host; pointers to them stay valid
  std::map<std::string, SimTransport*> listeners;  // by address
  std::set<std::pair<std::uint64_t, SimTransport*>> transports;
  std::map<std::uint64_t, SimConnection> connections;  // by id
  std::uint64_t next_id = 1;                           // for transports, connections and names
  SimNetwork::Faulted faulted;
  SimNetwork::Tap tap;            // null: none
  SimNetwork::Director director;  // null: only the faults of links
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SIM_SIM_NETWORK_H_
