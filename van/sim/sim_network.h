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
#include "runtime/sim_world.h"
#include "van/sim/sim_van.h"

namespace leeway::van {

class SimTransport;

// Two ends, the one that dialled first. A ConnId is twice the connection's id plus the end.
struct SimConnection {
  struct End {
    SimTransport* transport = nullptr;  // null before it stands, once closed, and when dead
    std::string host;
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
  // When something of that size that leaves now arrives, in order behind what left before.
  absl::Duration TravelTime(const HostPair& link, std::uint64_t bytes, absl::Time* last_arrival);
  absl::Duration Uniform(absl::Duration low, absl::Duration high);
  // Runs `task` after a delay unless the network is gone by then.
  void Schedule(absl::Duration delay, std::function<void(SimNetworkState&)> task);

  runtime::SimWorld* world;
  LinkFaults default_faults;
  std::map<HostPair, LinkFaults> faults;
  std::map<HostPair, absl::Time> busy_until;  // links with a bandwidth
  std::set<HostPair> cuts;
  std::map<std::string, SimTransport*> listeners;  // by address
  std::set<std::pair<std::uint64_t, SimTransport*>> transports;
  std::map<std::uint64_t, SimConnection> connections;  // by id
  std::uint64_t next_id = 1;                           // of transports, connections and names
  SimNetwork::Faulted faulted;
  SimNetwork::Tap tap;  // null: nobody listens
};

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SIM_SIM_NETWORK_H_
