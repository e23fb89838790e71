#include "van/rdma/verbs/inventory.h"

#include <net/if.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"
#include "van/rdma/verbs/device_words.h"
#include "van/rdma/verbs/library.h"
#include "van/rdma/verbs/locked_memory.h"

namespace leeway::van::verbs {
namespace {

constexpr char kKernelDevices[] = "/sys/class/infiniband";
constexpr char kMappedV4[] = "::ffff:";
constexpr char kUserDevices[] = "/dev/infiniband";
constexpr char kCmDevice[] = "/dev/infiniband/rdma_cm";
constexpr std::size_t kGidsMax = 256;  // of a device

bool AnyIn(const char* folder) {
  std::error_code error;
  const std::filesystem::directory_iterator first(folder, error);
  return !error && first != std::filesystem::directory_iterator();
}

absl::Status NoDevice() {
  return absl::UnavailableError(
      "this machine has no rdma device: load its kernel module (for example `modprobe mlx5_ib`), "
      "or "
      "make one of any network card: `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev "
      "eth0`");
}

FoundGid Found(const ibv_gid_entry& entry) {
  FoundGid found;
  found.index = static_cast<int>(entry.gid_index);
  found.gid = GidText(entry.gid);
  found.type = GidTypeText(entry.gid_type);
  char card[IF_NAMESIZE] = {};
  if (entry.ndev_ifindex != 0 && ::if_indextoname(entry.ndev_ifindex, card) != nullptr) {
    found.card = card;
  }
  return found;
}

std::vector<FoundPort> PortsOf(const Library& library, ibv_context* context) {
  ibv_device_attr device{};
  if (library.query_device(context, &device) != 0) return {};
  std::array<ibv_gid_entry, kGidsMax> gids{};
  const ssize_t gid_count =
      library.query_gid_table(context, gids.data(), gids.size(), 0, sizeof(ibv_gid_entry));
  std::vector<FoundPort> ports;
  for (std::uint8_t number = 1; number <= device.phys_port_cnt; ++number) {
    ibv_port_attr port;
    if (QueryPort(library, context, number, &port) != 0) continue;
    FoundPort found;
    found.number = number;
    found.up = port.state == IBV_PORT_ACTIVE;
    found.state = PortStateText(port.state);
    found.link = LinkText(port.link_layer);
    found.mtu_bytes = MtuBytes(port.active_mtu);
    for (ssize_t i = 0; i < gid_count; ++i) {
      if (gids[i].port_num == number) found.gids.push_back(Found(gids[i]));
    }
    ports.push_back(std::move(found));
  }
  return ports;
}

FoundDevice LookInto(const Library& library, ibv_device* device) {
  FoundDevice found;
  found.name = library.get_device_name(device);
  const std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(library.open_device(device),
                                                                    library.close_device);
  if (context == nullptr) {
    found.opens = absl::UnavailableError(
        absl::StrCat("cannot open the rdma device ", found.name, ": ", std::strerror(errno),
                     "; may this user read and write ", kUserDevices, "/uverbs*?"));
  } else {
    found.ports = PortsOf(library, context.get());
  }
  return found;
}

bool OnPath(const FoundDevice& device, const FoundPort& port, const Path& path) {
  return (path.device.empty() || device.name == path.device) &&
         (path.port == 0 || port.number == path.port);
}

bool IsGid(const FoundGid& gid, const Path& path) {
  return path.gid_index == Path::kAnyGid || gid.index == path.gid_index;
}

// NOT_FOUND: no device, port and GID of this machine match the path.
absl::Status CheckPath(const Inventory& inventory, const Path& path) {
  std::vector<std::string> names;
  bool has_port = false;
  for (const FoundDevice& device : inventory.devices) {
    names.push_back(device.name);
    if (!device.opens.ok() && device.name == path.device) return device.opens;
    for (const FoundPort& port : device.ports) {
      if (!OnPath(device, port, path)) continue;
      has_port = true;
      if (path.gid_index == Path::kAnyGid) return absl::OkStatus();
      for (const FoundGid& gid : port.gids) {
        if (IsGid(gid, path)) return absl::OkStatus();
      }
    }
  }
  if (!path.set() || (path.device.empty() && path.port == 0 && path.gid_index == Path::kAnyGid)) {
    return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("this machine has no ",
                                          has_port ? "such GID" : "such rdma device or port", ": ",
                                          PathText(path), "; it has ", absl::StrJoin(names, ", "),
                                          " (`leeway doctor` lists ports and GIDs)"));
}

absl::Status CheckCm() {
  if (::access(kCmDevice, F_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat(kCmDevice, " is missing: load its kernel module with `modprobe rdma_ucm`"));
  }
  if (::access(kCmDevice, R_OK | W_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat("this user may not open ", kCmDevice, ": `chmod 666 ", kCmDevice, "`"));
  }
  return absl::OkStatus();
}

}  // namespace

Inventory TakeInventory() {
  Inventory inventory;
  inventory.kernel_has_devices = AnyIn(kKernelDevices);
  const absl::StatusOr<Library>& library = SystemLibrary();
  if (!library.ok()) {
    inventory.status = library.status();
    return inventory;
  }
  if (!inventory.kernel_has_devices) {
    inventory.status = NoDevice();
    return inventory;
  }
  int count = 0;
  ibv_device** const devices = library->get_device_list(&count);
  if (devices == nullptr || count == 0) {
    inventory.status = absl::UnavailableError(
        absl::StrCat("the kernel has rdma devices (", kKernelDevices,
                     ") that libibverbs does not see: `modprobe ib_uverbs`, and install its "
                     "drivers (Debian: apt install ibverbs-providers)"));
  }
  for (int i = 0; i < count; ++i) inventory.devices.push_back(LookInto(*library, devices[i]));
  if (devices != nullptr) library->free_device_list(devices);
  return inventory;
}

std::string PathText(const Path& path) {
  std::vector<std::string> parts;
  if (!path.device.empty()) parts.push_back(absl::StrCat("LEEWAY_RDMA_DEVICE=", path.device));
  if (path.port != 0) parts.push_back(absl::StrCat("LEEWAY_RDMA_PORT=", path.port));
  if (path.gid_index != Path::kAnyGid) {
    parts.push_back(absl::StrCat("LEEWAY_RDMA_GID_INDEX=", path.gid_index));
  }
  if (path.mtu_bytes != 0) parts.push_back(absl::StrCat("LEEWAY_RDMA_MTU=", path.mtu_bytes));
  return absl::StrJoin(parts, " ");
}

std::string SourceOf(const Inventory& inventory, const Path& path) {
  if (path.device.empty() && path.port == 0 && path.gid_index == Path::kAnyGid) return "";
  for (const FoundDevice& device : inventory.devices) {
    for (const FoundPort& port : device.ports) {
      for (const FoundGid& gid : port.gids) {
        absl::string_view address = gid.gid;
        if (OnPath(device, port, path) && IsGid(gid, path) && port.up &&
            absl::ConsumePrefix(&address, kMappedV4)) {
          return std::string(address);
        }
      }
    }
  }
  return "";
}

absl::Status UsableBy(const Inventory& inventory, std::uint64_t locked_bytes, const Path& path) {
  LEEWAY_RETURN_IF_ERROR(inventory.status);
  LEEWAY_RETURN_IF_ERROR(CheckPath(inventory, path));
  std::vector<std::string> down;
  absl::Status closed;
  for (const FoundDevice& device : inventory.devices) {
    if (closed.ok()) closed = device.opens;
    for (const FoundPort& port : device.ports) {
      if (!OnPath(device, port, path)) continue;
      if (port.up) return CheckLockedMemory(locked_bytes);
      down.push_back(absl::StrCat(device.name, " port ", port.number, " is ", port.state));
    }
  }
  if (down.empty()) return closed.ok() ? NoDevice() : closed;
  return absl::UnavailableError(absl::StrCat(
      "no port of an rdma device is up (", absl::StrJoin(down, ", "),
      "): `ip link set dev CARD up` for its network card, or look at cable and switch"));
}

absl::Status Usable(const Path& path) {
  LEEWAY_RETURN_IF_ERROR(UsableBy(TakeInventory(), LockedMemoryLimit(), path));
  return CheckCm();
}

}  // namespace leeway::van::verbs
