// Inventory lists the rdma devices of this machine; Usable tells what prevents their use,
// such as the limit of memory that this process may lock.
#ifndef LEEWAY_VAN_RDMA_VERBS_INVENTORY_H_
#define LEEWAY_VAN_RDMA_VERBS_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

struct FoundGid {
  int index = 0;
  std::string gid;   // "::ffff:10.0.0.7"
  std::string type;  // "RoCE v2", "RoCE v1", "InfiniBand"
  std::string card;  // the network card with that address; empty: none
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
  absl::Status opens;  // why it cannot be opened; then `ports` is empty
  std::vector<FoundPort> ports;
};

struct Inventory {
  // Why no device could be queried: a library is missing, or the kernel shows none.
  absl::Status status;
  bool kernel_has_devices = false;  // whether or not a library sees them
  std::vector<FoundDevice> devices;
};
// Reads the devices anew with each call. Any thread. Does not call the library if the kernel has no
// device.
Inventory TakeInventory();

// The limit of memory that this process may lock; every registration needs locked memory.
inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
// With less, even small clusters reach the limit; many systems allow 8 MiB.
inline constexpr std::uint64_t kLockedBytesMin = 64 << 20;

// In bytes; kNoLimit also if the process has the capability CAP_IPC_LOCK.
std::uint64_t LockedMemoryLimit();
// "8388608 bytes", "unlimited".
std::string LockedMemoryText(std::uint64_t limit);
// The commands that raise the limit, for messages.
inline constexpr char kRaiseLockedMemory[] =
    "raise it with `ulimit -l unlimited` (root), with `* - memlock unlimited` in "
    "/etc/security/limits.conf, or with LimitMEMLOCK=infinity in the service file";

// OK if connections can be made over that path; else the first obstacle and how to remove it, in
// one line. `locked_bytes` is the memory that this process may lock.
absl::Status UsableBy(const Inventory& inventory, std::uint64_t locked_bytes,
                      const Path& path = {});
// The same for this machine and process, including the requirements of rdma_cm.
absl::Status Usable(const Path& path = {});

// The settings of the path that are set: "LEEWAY_RDMA_DEVICE=mlx5_0 LEEWAY_RDMA_PORT=2".
std::string PathText(const Path& path);
// The numeric address of this machine from which connections over that path start: that of the
// path's first GID that is an address of a network card. Empty: the path has none, and rdma_cm
// chooses by the route to the other side.
std::string SourceOf(const Inventory& inventory, const Path& path);

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_INVENTORY_H_
