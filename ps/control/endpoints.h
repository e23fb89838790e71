// The endpoints of a server's data threads: the addresses that they listen at, and those that
// workers are told.
#ifndef LEEWAY_PS_CONTROL_ENDPOINTS_H_
#define LEEWAY_PS_CONTROL_ENDPOINTS_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"

namespace leeway::ps {

struct SchedulerAddress {
  std::string host;  // IPv6 addresses in their brackets
  std::uint16_t port = 0;
};
// Of "host:port" or "tcp://host:port".
SchedulerAddress SchedulerAddressOf(absl::string_view scheduler);

// The address to bind: the network card where one is named; this machine alone where the scheduler
// (or Config::host) is on the loopback; otherwise every address of the machine (empty).
std::string BindHost(const Config& config);

// Has `listen` listen at `any_address` (van::Factory::AnyAddress): at any port, or at the first
// free one of Config::ports. RESOURCE_EXHAUSTED: none of these is free.
using ListenAt = absl::FunctionRef<absl::StatusOr<std::string>(const std::string& address)>;
absl::StatusOr<std::string> ListenWithin(const Config& config, const std::string& any_address,
                                         ListenAt listen);

// The address to announce for a listening `endpoint`: with Config::host for its host, where that
// is set and the endpoint is tcp.
std::string AnnouncedEndpoint(const Config& config, absl::string_view endpoint);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_CONTROL_ENDPOINTS_H_
