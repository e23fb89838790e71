#include "tools/doctor/findings.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "van/mixed/mixed_van.h"
#include "van/rdma/verbs/inventory.h"

namespace leeway::tools {
namespace {

using van::verbs::FoundDevice;
using van::verbs::FoundGid;
using van::verbs::FoundPort;

// A connection takes one or two, and a server has one from each worker and data thread.
constexpr std::uint64_t kDescriptorsMin = 4096;
constexpr char kMappedIpv4[] = "::ffff:";

std::string Said(const absl::Status& status) { return std::string(status.message()); }

bool HasDevice(const DoctorFacts& facts) { return facts.rdma.kernel_has_devices; }

// "192.0.2.7" for the GID of that address; link-local ones are in every network.
std::optional<std::string> AddressOf(const FoundGid& gid) {
  if (absl::StartsWith(gid.gid, kMappedIpv4)) return gid.gid.substr(sizeof(kMappedIpv4) - 1);
  if (absl::StartsWith(gid.gid, "fe80:")) return std::nullopt;
  return absl::StrCat("[", gid.gid, "]");
}

// Addresses of ports that are up, each once.
std::vector<std::string> RdmaAddresses(const DoctorFacts& facts) {
  std::vector<std::string> addresses;
  for (const FoundDevice& device : facts.rdma.devices) {
    for (const FoundPort& port : device.ports) {
      for (const FoundGid& gid : port.gids) {
        const std::optional<std::string> address = port.up ? AddressOf(gid) : std::nullopt;
        if (!address || std::count(addresses.begin(), addresses.end(), *address) > 0) continue;
        addresses.push_back(*address);
      }
    }
  }
  return addresses;
}

std::string PortText(const FoundPort& port) {
  std::vector<std::string> gids;
  for (const FoundGid& gid : port.gids) {
    gids.push_back(absl::StrCat(gid.index, " ", gid.gid, " (", gid.type,
                                gid.card.empty() ? "" : absl::StrCat(", ", gid.card), ")"));
  }
  return absl::StrCat(port.state, ", ", port.link, ", MTU ", port.mtu_bytes,
                      ", GIDs: ", gids.empty() ? "none" : absl::StrJoin(gids, "; "));
}

// ---- one finding each ----

Finding SettingsFinding(const DoctorFacts& facts) {
  if (facts.settings.ok()) return {Mark::kOk, "settings", "are valid", ""};
  return {
      Mark::kBad, "settings", Said(facts.settings),
      "set it as docs/operations.md says, or unset it; the lines below assume default settings"};
}

Finding Address(const DoctorFacts& facts) {
  Finding finding{Mark::kOk, "address of this node", "", ""};
  if (!facts.address_status.ok()) {
    finding.mark = Mark::kBad;
    finding.found = Said(facts.address_status);
    finding.mend = "LEEWAY_INTERFACE names a network card of this machine, LEEWAY_HOST an address";
    return finding;
  }
  finding.found = absl::StrCat(facts.address, " (from ", facts.address_from, ")");
  const bool asked = facts.config.interface.empty() && facts.config.host.empty() &&
                     absl::StrContains(facts.address_from, "LEEWAY_SCHEDULER");
  if (absl::StartsWith(facts.address, "127.") && !asked) {
    finding.mark = Mark::kWarn;
    finding.mend = "only this machine reaches it there: set LEEWAY_INTERFACE or LEEWAY_HOST";
  }
  return finding;
}

Finding Shm(const DoctorFacts& facts) {
  if (facts.shm.ok()) {
    return {Mark::kOk, "shared memory",
            absl::StrCat("there is, up to ", facts.config.shm_bytes,
                         " bytes a connection and side (LEEWAY_SHM_BYTES)"),
            ""};
  }
  return {facts.config.van == "shm" ? Mark::kBad : Mark::kWarn, "shared memory", Said(facts.shm),
          "needs memfd_create with seals (Linux 5.1) and no `ulimit -f`"};
}

Finding Descriptors(const DoctorFacts& facts) {
  Finding finding{Mark::kOk, "file descriptors", absl::StrCat(facts.descriptors), ""};
  if (facts.descriptors < kDescriptorsMin) {
    finding.mark = Mark::kWarn;
    finding.mend = absl::StrCat("each connection takes some: `ulimit -n ", kDescriptorsMin,
                                "`, or LimitNOFILE= in the service file");
  }
  return finding;
}

Finding Locked(const DoctorFacts& facts) {
  Finding finding{Mark::kOk, "locked memory", van::verbs::LockedMemoryText(facts.locked_bytes), ""};
  if (facts.locked_bytes >= van::verbs::kLockedBytesMin) return finding;
  if (!HasDevice(facts)) {
    absl::StrAppend(&finding.found, " (matters to rdma only)");
    return finding;
  }
  finding.mark = Mark::kWarn;
  finding.mend = absl::StrCat("rdma takes ", van::verbs::kLockedBytesMin,
                              " bytes or more: ", van::verbs::kRaiseLockedMemory);
  return finding;
}

// A machine without a device lacks nothing, unless its settings ask for rdma.
Finding Rdma(const DoctorFacts& facts) {
  if (facts.rdma_usable.ok()) return {Mark::kOk, "rdma", "can be used", ""};
  Finding finding{Mark::kWarn, "rdma", "cannot be used", Said(facts.rdma_usable)};
  if (facts.config.van == "rdma") finding.mark = Mark::kBad;
  if (finding.mark == Mark::kWarn && !HasDevice(facts)) {
    return {Mark::kOk, "rdma", "this machine has no rdma device", ""};
  }
  return finding;
}

void AddPorts(const DoctorFacts& facts, std::vector<Finding>* findings) {
  for (const FoundDevice& device : facts.rdma.devices) {
    if (!device.opens.ok()) {
      findings->push_back({Mark::kWarn, absl::StrCat("rdma device ", device.name), "not open to us",
                           Said(device.opens)});
    }
    for (const FoundPort& port : device.ports) {
      Finding finding{Mark::kOk, absl::StrCat("rdma device ", device.name, ", port ", port.number),
                      PortText(port), ""};
      if (!port.up) {
        finding.mark = Mark::kWarn;
        finding.mend =
            "`ip link set dev CARD up` for its network card, or look at cable and switch";
      }
      findings->push_back(std::move(finding));
    }
  }
}

// Peers dial the node's address, over rdma as over tcp.
void AddRdmaAddress(const DoctorFacts& facts, std::vector<Finding>* findings) {
  if (!facts.rdma_usable.ok() || !facts.address_status.ok()) return;
  const std::vector<std::string> addresses = RdmaAddresses(facts);
  const bool is_one = std::count(addresses.begin(), addresses.end(), facts.address) > 0;
  Finding finding{Mark::kOk, "rdma at this node's address", absl::StrCat("at ", facts.address), ""};
  if (!is_one) {
    finding.mark = Mark::kWarn;
    finding.found = absl::StrCat("no device has ", facts.address);
    finding.mend =
        addresses.empty()
            ? "give the device's network card an address"
            : absl::StrCat("set LEEWAY_INTERFACE or LEEWAY_HOST to one of the devices': ",
                           absl::StrJoin(addresses, ", "));
  }
  findings->push_back(std::move(finding));
}

// The rdma settings, if any is set.
void AddRdmaPath(const DoctorFacts& facts, std::vector<Finding>* findings) {
  const van::verbs::Path path = van::RdmaPathOf(facts.config);
  if (!path.set()) return;
  Finding finding{Mark::kOk, "rdma settings", van::verbs::PathText(path), ""};
  const std::string source = van::verbs::SourceOf(facts.rdma, path);
  if (!source.empty()) absl::StrAppend(&finding.found, ", from ", source);
  if (absl::IsNotFound(facts.rdma_usable)) {
    finding.mark = Mark::kBad;
    finding.mend = Said(facts.rdma_usable);
  }
  findings->push_back(std::move(finding));
}

Finding Chosen(const char* what, const Choice& choice) {
  Finding finding{Mark::kOk, what, absl::StrCat(choice.transport, ": ", choice.why), ""};
  if (choice.transport == "nothing") {
    finding.mark = Mark::kBad;
    finding.mend = "fix the lines above, or set LEEWAY_VAN=auto";
  }
  return finding;
}

}  // namespace

const char* NameOf(Mark mark) {
  return mark == Mark::kOk ? "ok" : mark == Mark::kWarn ? "warn" : "bad";
}

// ---- what auto and the others choose ----

Choice OnThisMachine(const DoctorFacts& facts) {
  const std::string& van = facts.config.van;
  if (van == "tcp" || van == "zmq") return {van, absl::StrCat("LEEWAY_VAN is ", van)};
  if (van == "rdma") {
    if (facts.rdma_usable.ok()) return {"rdma", "LEEWAY_VAN is rdma"};
    return {"nothing", "LEEWAY_VAN is rdma, which cannot be used"};
  }
  if (facts.shm.ok())
    return {"shm", absl::StrCat("LEEWAY_VAN is ", van, ", and there is shared memory")};
  if (van == "shm") return {"nothing", "LEEWAY_VAN is shm, and there is no shared memory"};
  return {"tcp", "there is no shared memory"};
}

Choice OnOthers(const DoctorFacts& facts) {
  const std::string& van = facts.config.van;
  if (van == "tcp" || van == "zmq") return {van, absl::StrCat("LEEWAY_VAN is ", van)};
  if (van == "shm") return {"nothing", "LEEWAY_VAN is shm, which ends at this machine"};
  if (facts.rdma_usable.ok()) {
    return {"rdma", van == "rdma" ? "LEEWAY_VAN is rdma"
                                  : "LEEWAY_VAN is auto, and rdma can be used (tcp to those who "
                                    "cannot)"};
  }
  if (van == "rdma") return {"nothing", "LEEWAY_VAN is rdma, which cannot be used"};
  return {"tcp", HasDevice(facts) ? "rdma cannot be used" : "this machine has no rdma device"};
}

std::vector<Finding> Findings(const DoctorFacts& facts) {
  std::vector<Finding> findings = {SettingsFinding(facts), Address(facts), Descriptors(facts),
                                   Shm(facts), Rdma(facts)};
  AddPorts(facts, &findings);
  AddRdmaPath(facts, &findings);
  AddRdmaAddress(facts, &findings);
  findings.push_back(Locked(facts));
  Finding same = Chosen("to peers on this machine", OnThisMachine(facts));
  Finding others = Chosen("to peers on other machines", OnOthers(facts));
  // A cluster of one machine on purpose.
  if (facts.config.van == "shm") others = {Mark::kOk, others.what, others.found, ""};
  findings.push_back(std::move(same));
  findings.push_back(std::move(others));
  return findings;
}

int DoctorCode(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.mark == Mark::kBad; })
             ? 1
             : 0;
}

}  // namespace leeway::tools
