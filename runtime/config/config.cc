#include "leeway/config.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/config/address.h"
#include "runtime/config/config_names.h"
#include "runtime/config/config_settings.h"
#include "runtime/log/log.h"

namespace leeway {
namespace {

using runtime::NumberSetting;
using runtime::Quote;

// A setting as it was read: its name and its text.
struct Found {
  std::string name;
  std::string value;
};

absl::Status Refuse(const Found& found, absl::string_view must_be) {
  return absl::InvalidArgumentError(
      absl::StrCat(found.name, " is ", Quote(found.value), ": ", must_be));
}

// An empty value means "not set": launchers write it so.
std::optional<Found> Find(const Config::Lookup& lookup, const char* name) {
  if (name == nullptr) return std::nullopt;
  std::optional<std::string> value = lookup(name);
  if (!value.has_value() || value->empty()) return std::nullopt;
  return Found{name, *std::move(value)};
}

// Reads a setting under Leeway's name and ps-lite's. Both may be set if their parsed values are
// equal. nullopt: neither is set. `parse` is a StatusOr<T>(const Found&).
template <class Parse>
auto Resolve(std::optional<Found> ours, std::optional<Found> theirs, Parse parse)
    -> absl::StatusOr<std::optional<typename decltype(parse(*ours))::value_type>> {
  using T = typename decltype(parse(*ours))::value_type;
  std::optional<T> value;
  if (ours.has_value()) {
    LEEWAY_ASSIGN_OR_RETURN(value, parse(*ours));
  }
  if (!theirs.has_value()) return value;
  LEEWAY_ASSIGN_OR_RETURN(T other, parse(*theirs));
  if (value.has_value() && *value != other) {
    return absl::InvalidArgumentError(absl::StrCat(ours->name, " is ", Quote(ours->value), " but ",
                                                   theirs->name, " is ", Quote(theirs->value),
                                                   ": unset one of them, or make them equal"));
  }
  return std::optional<T>(std::move(other));
}

absl::StatusOr<Role> ParseRole(const Found& found) {
  for (const Role role : {Role::kScheduler, Role::kServer, Role::kWorker}) {
    if (found.value == Name(role)) return role;
  }
  return Refuse(found, "it must be scheduler, server or worker");
}

absl::StatusOr<std::uint64_t> ParseNumber(const Found& found, std::uint64_t min, std::uint64_t max,
                                          absl::string_view must_be) {
  std::uint64_t value = 0;
  if (!absl::SimpleAtoi(found.value, &value) || value < min || value > max) {
    return Refuse(found, must_be);
  }
  return value;
}

absl::StatusOr<std::string> ParseAddress(const Found& found) {
  absl::StatusOr<std::string> address = runtime::NormalizeAddress(found.value);
  if (!address.ok()) return Refuse(found, address.status().message());
  return address;
}

absl::StatusOr<std::string> ParseHost(const Found& found) {
  absl::StatusOr<std::string> host = runtime::NormalizeHost(found.value);
  if (!host.ok()) return Refuse(found, host.status().message());
  return host;
}

absl::StatusOr<std::string> ParseInterface(const Found& found) {
  constexpr std::size_t kCardNameBytesMax = 15;  // the kernel's IFNAMSIZ, less its final zero
  const bool plain = found.value.find_first_of("/ \t\r\n") == std::string::npos;
  if (!plain || found.value.size() > kCardNameBytesMax) {
    return Refuse(found, "it must be the name of a network card, like eth0");
  }
  return found.value;
}

absl::StatusOr<std::string> ParseRdmaDevice(const Found& found) {
  if (!runtime::IsRdmaDevice(found.value)) return Refuse(found, runtime::kRdmaDeviceMustBe);
  return found.value;
}

absl::StatusOr<PortRange> ParsePorts(const Found& found) {
  const std::pair<std::string, std::string> ends =
      absl::StrSplit(found.value, absl::MaxSplits('-', 1));
  const bool one = found.value.find('-') == std::string::npos;
  std::uint32_t first = 0, last = 0;
  if (!absl::SimpleAtoi(ends.first, &first) ||
      !absl::SimpleAtoi(one ? ends.first : ends.second, &last) || first == 0 || last > 65535 ||
      first > last) {
    return Refuse(
        found, "it must be a port from 1 to 65535, or two with a - between them, like 9000-9015");
  }
  return PortRange{static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(last)};
}

absl::StatusOr<bool> ParseSwitch(const Found& found) {
  if (found.value == "1") return true;
  if (found.value == "0") return false;
  return Refuse(found, "it must be 0 or 1");
}

absl::StatusOr<std::string> ParsePath(const Found& found) {
  constexpr std::size_t kPathBytesMax = 4095;  // the kernel's PATH_MAX, less its final zero
  if (found.value.size() > kPathBytesMax) {
    return Refuse(found, absl::StrCat("it must be a path of at most ", kPathBytesMax, " bytes"));
  }
  return found.value;
}

// ps-lite has two variables for the scheduler's address; neither has a meaning alone.
absl::StatusOr<std::optional<Found>> FindDmlcRoot(const Config::Lookup& lookup) {
  const std::optional<Found> host = Find(lookup, "DMLC_PS_ROOT_URI");
  const std::optional<Found> port = Find(lookup, "DMLC_PS_ROOT_PORT");
  if (!host.has_value() && !port.has_value()) return std::optional<Found>();
  if (!host.has_value() || !port.has_value()) {
    const Found& present = host.has_value() ? *host : *port;
    return absl::InvalidArgumentError(
        absl::StrCat(present.name, " is ", Quote(present.value), " but ",
                     host.has_value() ? "DMLC_PS_ROOT_PORT" : "DMLC_PS_ROOT_URI",
                     " is not set: set both, or LEEWAY_SCHEDULER instead"));
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::string normal_host, ParseHost(*host));
  LEEWAY_RETURN_IF_ERROR(
      ParseNumber(*port, 0, 65535, "it must be a whole number from 0 to 65535").status());
  return std::optional<Found>(
      Found{"DMLC_PS_ROOT_URI:DMLC_PS_ROOT_PORT", absl::StrCat(normal_host, ":", port->value)});
}

// Parses the setting into `*field` if it is set.
template <class T, class Parse>
absl::Status ReadInto(const Config::Lookup& lookup, const char* name, const char* alias,
                      Parse parse, T* field) {
  LEEWAY_ASSIGN_OR_RETURN(auto value, Resolve(Find(lookup, name), Find(lookup, alias), parse));
  if (value.has_value()) *field = *std::move(value);
  return absl::OkStatus();
}

absl::Status ReadNumbers(const Config::Lookup& lookup, Config* config) {
  for (const NumberSetting& setting : runtime::NumberSettings()) {
    const auto parse = [&](const Found& found) {
      return ParseNumber(found, setting.min, setting.max, setting.MustBe());
    };
    LEEWAY_ASSIGN_OR_RETURN(
        const std::optional<std::uint64_t> value,
        Resolve(Find(lookup, setting.name), Find(lookup, setting.alias), parse));
    if (value.has_value()) setting.Set(*value, config);
  }
  return absl::OkStatus();
}

absl::Status ReadRank(const Config::Lookup& lookup, Config* config) {
  constexpr std::uint64_t kRankMax = runtime::kConfigWorkersMax - 1;
  const std::optional<Found> found = Find(lookup, "LEEWAY_RANK");
  if (!found.has_value()) return absl::OkStatus();
  LEEWAY_ASSIGN_OR_RETURN(
      const std::uint64_t rank,
      ParseNumber(*found, 0, kRankMax,
                  absl::StrCat("it must be a whole number from 0 to ", kRankMax)));
  config->rank = static_cast<std::uint32_t>(rank);
  return absl::OkStatus();
}

std::vector<std::string> EnvironmentNames() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    names.emplace_back(*entry, std::strcspn(*entry, "="));
  }
  return names;
}

absl::StatusOr<std::string> ParseLevel(const Found& found) {
  if (runtime::ParseLogLevel(found.value).has_value()) return found.value;
  return Refuse(found, "it must be debug, info, warning, error or off");
}

absl::StatusOr<std::string> ParseVan(const Found& found) {
  if (runtime::IsVan(found.value)) return found.value;
  return Refuse(found, runtime::kVanMustBe);
}

absl::StatusOr<std::string> ParseChecksum(const Found& found) {
  if (runtime::IsChecksum(found.value)) return found.value;
  return Refuse(found, runtime::kChecksumMustBe);
}

}  // namespace

absl::string_view Name(Role role) {
  switch (role) {
    case Role::kScheduler:
      return "scheduler";
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
    case Role::kReader:
      return "reader";
    case Role::kTool:
      return "tool";
    case Role::kUnknown:
      break;
  }
  return "unknown";
}

absl::StatusOr<Config> Config::From(const Lookup& lookup) {
  Config config;
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_ROLE", "DMLC_ROLE", ParseRole, &config.role));
  LEEWAY_ASSIGN_OR_RETURN(std::optional<Found> root, FindDmlcRoot(lookup));
  LEEWAY_ASSIGN_OR_RETURN(std::optional<std::string> scheduler,
                          Resolve(Find(lookup, "LEEWAY_SCHEDULER"), std::move(root), ParseAddress));
  config.scheduler = std::move(scheduler).value_or("");
  LEEWAY_RETURN_IF_ERROR(ReadNumbers(lookup, &config));
  LEEWAY_RETURN_IF_ERROR(ReadRank(lookup, &config));
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_INTERFACE", "DMLC_INTERFACE", ParseInterface, &config.interface));
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_HOST", "DMLC_NODE_HOST", ParseHost, &config.host));
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_PORT", nullptr, ParsePorts, &config.ports));
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_LOG", nullptr, ParseLevel, &config.log_level));
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_VAN", nullptr, ParseVan, &config.van));
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_RDMA_DEVICE", nullptr, ParseRdmaDevice, &config.rdma_device));
  if (!runtime::IsRdmaMtu(config.rdma_mtu_bytes)) {
    const std::optional<Found> mtu = Find(lookup, "LEEWAY_RDMA_MTU");
    if (mtu.has_value()) return Refuse(*mtu, runtime::kRdmaMtuMustBe);
  }
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_CHECKSUM", nullptr, ParseChecksum, &config.checksum));
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_ELASTIC", nullptr, ParseSwitch, &config.elastic));
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_READ_ONLY", nullptr, ParseSwitch, &config.read_only));
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_CHECKPOINT_AT_END", nullptr, ParseSwitch,
                                  &config.checkpoint_at_end));
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_SCHEDULER_STATE", nullptr, ParsePath, &config.scheduler_state));
  LEEWAY_RETURN_IF_ERROR(
      ReadInto(lookup, "LEEWAY_CHECKPOINT_DIR", nullptr, ParsePath, &config.checkpoint_dir));
  LEEWAY_RETURN_IF_ERROR(ReadInto(lookup, "LEEWAY_RESTORE", nullptr, ParsePath, &config.restore));
  if (const std::optional<Found> plugins = Find(lookup, "LEEWAY_PLUGINS")) {
    config.plugins = absl::StrSplit(plugins->value, ':', absl::SkipEmpty());
  }
  return config;
}

absl::StatusOr<Config> Config::FromEnvironment() {
  absl::StatusOr<Config> config = From([](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  });
  const bool wanted =
      !config.ok() ||
      runtime::ParseLogLevel(config->log_level).value_or(runtime::LogLevel::kInfo) <=
          runtime::LogLevel::kWarning;
  if (wanted) {
    for (const std::string& unknown : runtime::UnknownSettings(EnvironmentNames())) {
      runtime::LogWarning(unknown);
    }
  }
  return config;
}

}  // namespace leeway
