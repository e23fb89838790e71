// RouteTo finds the address of this machine from which packets to another host leave. At that
// address the other host, and as a rule its neighbours, reach this machine, whatever the number of
// network cards.
#ifndef LEEWAY_VAN_ADDRESS_ROUTE_H_
#define LEEWAY_VAN_ADDRESS_ROUTE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace leeway::van {

struct Route {
  std::string source;  // "10.0.0.7", "fd00::7"; without brackets
  std::string to;      // the numeric address of the host
  std::string card;    // "eth1"; empty: unknown
  bool v6 = false;
};

// `host` is a name or an address, without brackets. Sends nothing, but blocks while a name is
// resolved. NOT_FOUND: the name cannot be resolved (yet); UNAVAILABLE: no route. Both have a reason
// (ReasonOf).
absl::StatusOr<Route> RouteTo(const std::string& host, std::uint16_t port);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ADDRESS_ROUTE_H_
