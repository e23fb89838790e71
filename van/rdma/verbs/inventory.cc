#include "van/rdma/verbs/inventory.h"

#include <linux/capability.h>
#include <net/if.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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
#include "van/rdma/verbs/library.h"

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

// True if the process has CAP_IPC_LOCK: then the kernel ignores its limit.
bool MayLockAll() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[CAP_IPC_LOCK / 32].effective >> (CAP_IPC_LOCK % 32) & 1) != 0;
}

// RESOURCE_EXHAUSTED below kLockedBytesMin.
absl::Status CheckLockedMemory(std::uint64_t limit) {
  if (limit >= kLockedBytesMin) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("this process may lock only ", LockedMemoryText(limit),
                   " of memory (RLIMIT_MEMLOCK), and rdma takes ", kLockedBytesMin,
                   " or more: ", kRaiseLockedMemory));
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

std::uint64_t LockedMemoryLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return kNoLimit;
  return limit.rlim_cur == RLIM_INFINITY || MayLockAll() ? kNoLimit : limit.rlim_cur;
}

std::string LockedMemoryText(std::uint64_t limit) {
  return limit == kNoLimit ? "unlimited" : absl::StrCat(limit, " bytes");
}

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
  if (!path.chooses()) return "";
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
  std::vector<std::string> names, down;
  bool has_port = false, has_gid = false, is_up = false;
  absl::Status closed;
  for (const FoundDevice& device : inventory.devices) {
    names.push_back(device.name);
    if (!device.opens.ok() && device.name == path.device) return device.opens;
    if (closed.ok()) closed = device.opens;
    for (const FoundPort& port : device.ports) {
      if (!OnPath(device, port, path)) continue;
      has_port = true;
      has_gid = has_gid || path.gid_index == Path::kAnyGid ||
                std::any_of(port.gids.begin(), port.gids.end(),
                            [&](const FoundGid& gid) { return IsGid(gid, path); });
      is_up = is_up || port.up;
      down.push_back(absl::StrCat(device.name, " port ", port.number, " is ", port.state));
    }
  }
  if (path.chooses() && !has_gid) {
    return absl::NotFoundError(
        absl::StrCat("this machine has no ", has_port ? "such GID" : "such rdma device or port",
                     ": ", PathText(path), "; it has ", absl::StrJoin(names, ", "),
                     " (`leeway doctor` lists ports and GIDs)"));
  }
  if (is_up) return CheckLockedMemory(locked_bytes);
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
