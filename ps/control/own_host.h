// The host name or address of this machine that others are told to find a server at.
#ifndef LEEWAY_PS_CONTROL_OWN_HOST_H_
#define LEEWAY_PS_CONTROL_OWN_HOST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/config.h"
#include "van/address/tcp_address.h"

namespace leeway::ps {

struct OwnHost {
  std::string host;  // for Config::host; empty: that of what is bound
  std::string
      interface;     // for Config::interface: what to bind; empty: as ps/control/endpoints.h says
  std::string from;  // where that comes from, for people
};

// Config::host where it is set; else the card that Config::interface names; else the loopback where
// the scheduler is on it; the first card's address where no scheduler is named; else the source
// address of the route to the scheduler. One attempt, which blocks while names are looked up.
// NOT_FOUND, UNAVAILABLE: as van::RouteTo, and may pass.
absl::StatusOr<OwnHost> FindOwnHost(const Config& config);

// Sets host and interface in `config`, and says in the log what was chosen and why. Where the
// scheduler's name is not known yet, or there is no route to it, waits and says so, until
// Config::connect_timeout has passed: DEADLINE_EXCEEDED with the last reason.
absl::Status AwaitOwnHost(Config* config);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_OWN_HOST_H_
