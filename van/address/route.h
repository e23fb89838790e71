// Which address of this machine packets to another host leave from: the one at which that host, and
// as a rule its neighbours, reach this machine, whatever the number of network cards.
#ifndef LEEWAY_VAN_ADDRESS_ROUTE_H_
#define LEEWAY_VAN_ADDRESS_ROUTE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace leeway::van {

struct Route {
  std::string source;  // "10.0.0.7", "fd00::7"; without brackets
  std::string to;      // the host as a number
  std::string card;    // "eth1"; empty: unknown
  bool v6 = false;
};

// `host` is a name or an address, without brackets. Sends nothing, but blocks while a name is
// looked up. NOT_FOUND: there is no such name (yet); UNAVAILABLE: no route. Both have a reason
// (ReasonOf).
absl::StatusOr<Route> RouteTo(const std::string& host, std::uint16_t port);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_ROUTE_H_
