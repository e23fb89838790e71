// What rdma devices this machine has, and what stands in the way of using them.
#ifndef LEEWAY_VAN_RDMA_VERBS_INVENTORY_H_
#define LEEWAY_VAN_RDMA_VERBS_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

struct FoundGid {
  int index = 0;
  std::string gid;   // "::ffff:10.0.0.7"
  std::string type;  // "RoCE v2", "RoCE v1", "InfiniBand"
  std::string card;  // the network card it is an address of; empty: none
};

struct FoundPort {
  int number = 1;
  bool up = false;
  std::string state;  // "ACTIVE", "DOWN", ...
  std::string link;   // "Ethernet" or "InfiniBand"
  std::uint32_t mtu_bytes = 0;
  std::vector<FoundGid> gids;
};

struct FoundDevice {
  std::string name;
  absl::Status opens;  // why it cannot be looked into; it then has no ports here
  std::vector<FoundPort> ports;
};

struct Inventory {
  // Why no device could be asked for: a library is missing, or the kernel shows none.
  absl::Status status;
  bool kernel_has_devices = false;  // whether or not a library can tell
  std::vector<FoundDevice> devices;
};
// Looks each time; any thread. Never asks the library for anything where the kernel has no device.
Inventory TakeInventory();

// Whether a connection could be made here that goes that way: OK, or the first that is in the way
// and how to mend it, in one line. `locked_bytes` is how much memory this process may lock.
absl::Status UsableBy(const Inventory& inventory, std::uint64_t locked_bytes,
                      const Path& path = {});
// Of this machine and process, with what rdma_cm needs.
absl::Status Usable(const Path& path = {});

// "LEEWAY_RDMA_DEVICE=mlx5_0 LEEWAY_RDMA_PORT=2": what of it is set.
std::string PathText(const Path& path);
// The address of this machine, as numbers, from which a connection goes that way: that of the first
// GID of the path which is an address of a network card. Empty: the path has none, and rdma_cm
// chooses by the way to the other side.
std::string SourceOf(const Inventory& inventory, const Path& path);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_INVENTORY_H_
