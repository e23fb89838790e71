// Verbs of the system: libibverbs and librdmacm, where they and a device are there.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_

#include <memory>
#include <string>
#include <vector>

#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

std::unique_ptr<Provider> NewSystemProvider();

// A port of a device of this machine, for people.
struct PortReport {
  std::string device;
  int port = 0;
  std::string link;   // "Ethernet" or "InfiniBand"
  std::string state;  // "active", "down", …
  bool active = false;
  std::uint32_t mtu_bytes = 0;
  std::vector<std::string> gids;  // "1: ::ffff:10.0.0.7"
};
// NOT_FOUND: the libraries are not installed, or no device is there.
absl::StatusOr<std::vector<PortReport>> ReportPorts();

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
