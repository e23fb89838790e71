// The simulated network itself: hosts, the links between them, and connections.
#ifndef LEEWAY_VAN_SIM_SIM_NETWORK_H_
#define LEEWAY_VAN_SIM_SIM_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "runtime/sim/sim_world.h"
#include "van/sim/sim_van.h"

namespace leeway::van {

class SimTransport;

// A host's card at work.
struct SimNic {
  absl::Time egress_busy_until = absl::InfinitePast();
  absl::Time ingress_busy_until = absl::InfinitePast();
  SimNetwork::Traffic traffic;
};

// Two ends, the one that dialled first. A ConnId is twice the connection's id plus the end.
struct SimConnection {
  struct End {
    SimTransport* transport = nullptr;  // null before it stands, once closed, and when dead
    std::string host;
    SimNic* nic = nullptr;  // the host's
    // One direction: things arrive at this end in the order they left the other.
    absl::Time last_arrival = absl::InfinitePast();
  };
  End ends[2];
};

struct SimNetworkState : std::enable_shared_from_this<SimNetworkState> {
  using HostPair = std::pair<std::string, std::string>;  // from, to

  explicit SimNetworkState(runtime::SimWorld* w) : world(w) {}

  const LinkFaults& FaultsOf(const HostPair& link) const;
  bool IsCut(const HostPair& link) const { return cuts.contains(link); }
  // From now until the first and the last byte of something is at the other host.
  struct Trip {
    absl::Duration first, last;
  };
  // Of something of that size that leaves now, in order behind what left before.
  Trip Leave(const HostPair& link, std::uint64_t bytes, const SimConnection::End& from,
             SimConnection::End* to);
  // Runs `task` when the card at its end has taken it, unless the network is gone by then.
  void Arrive(const Trip& trip, std::uint64_t bytes, SimNic* nic,
              std::function<void(SimNetworkState&)> task);
  absl::Duration Uniform(absl::Duration low, absl::Duration high);
  bool Strikes(double probability) { return probability > 0 && world->Uniform() < probability; }
  // Runs `task` after a delay unless the network is gone by then.
  void Schedule(absl::Duration delay, std::function<void(SimNetworkState&)> task);

  runtime::SimWorld* world;
  LinkFaults default_faults;
  std::map<HostPair, LinkFaults> faults;
  std::map<HostPair, absl::Time> busy_until;  // links with a bandwidth
  std::set<HostPair> cuts;
  Nic nic;                                         // every host's
  std::map<std::string, SimNic> nics;              // by host; they stay where they are
  std::map<std::string, SimTransport*> listeners;  // by address
  std::set<std::pair<std::uint64_t, SimTransport*>> transports;
  std::map<std::uint64_t, SimConnection> connections;  // by id
  std::uint64_t next_id = 1;                           // of transports, connections and names
  SimNetwork::Faulted faulted;
  SimNetwork::Tap tap;            // null: nobody listens
  SimNetwork::Director director;  // null: the faults of links decide
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SIM_SIM_NETWORK_H_
