#include "ps/control/endpoints.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway::ps {
namespace {

constexpr absl::string_view kTcp = "tcp://";
constexpr absl::string_view kLoopback = "127.0.0.1";

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || absl::StartsWith(host, "127.");
}

// The host of "host:port" or "tcp://host:port"; IPv6 addresses keep their brackets.
absl::string_view HostOf(absl::string_view address) {
  if (absl::StartsWith(address, kTcp)) address.remove_prefix(kTcp.size());
  return address.substr(0, address.rfind(':'));
}

bool SchedulerIsLocal(absl::string_view scheduler) {
  const bool other_scheme =
      absl::StrContains(scheduler, "://") && !absl::StartsWith(scheduler, kTcp);
  return other_scheme || IsLoopback(HostOf(scheduler));
}

}  // namespace

SchedulerAddress SchedulerAddressOf(absl::string_view scheduler) {
  SchedulerAddress address;
  address.host = std::string(HostOf(scheduler));
  std::uint32_t port = 0;
  if (absl::SimpleAtoi(scheduler.substr(scheduler.rfind(':') + 1), &port)) {
    address.port = static_cast<std::uint16_t>(port);
  }
  return address;
}

absl::StatusOr<std::string> ListenWithin(const Config& config, const std::string& any_address,
                                         ListenAt listen) {
  const PortRange& ports = config.ports;
  if (ports.first == 0 || !absl::StartsWith(any_address, kTcp)) return listen(any_address);
  const std::string host = any_address.substr(0, any_address.rfind(':'));
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    absl::StatusOr<std::string> endpoint = listen(absl::StrCat(host, ":", port));
    if (!absl::IsAlreadyExists(endpoint.status())) return endpoint;
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "LEEWAY_PORT=", ports.first, ports.first == ports.last ? "" : absl::StrCat("-", ports.last),
      ": no port is free; each data thread of a server takes one (LEEWAY_SERVER_THREADS is ",
      config.server_threads, ")"));
}

std::string BindHost(const Config& config) {
  if (!config.interface.empty()) return config.interface;
  if (!config.host.empty()) return IsLoopback(config.host) ? config.host : "";
  return SchedulerIsLocal(config.scheduler) ? std::string(kLoopback) : "";
}

std::string AnnouncedEndpoint(const Config& config, absl::string_view endpoint) {
  const std::size_t port = endpoint.rfind(':');
  if (config.host.empty() || !absl::StartsWith(endpoint, kTcp) || port < kTcp.size()) {
    return std::string(endpoint);
  }
  const bool bare_ipv6 = absl::StrContains(config.host, ':') && config.host.front() != '[';
  return absl::StrCat(kTcp, bare_ipv6 ? "[" : "", config.host, bare_ipv6 ? "]" : "",
                      endpoint.substr(port));
}

}  // namespace leeway::ps
