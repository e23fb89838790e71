#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "leeway/config.h"
#include "runtime/base/clean_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/config/address.h"
#include "runtime/config/config_settings.h"
#include "runtime/log/log.h"

namespace leeway {
namespace {

using runtime::NumberSetting;
using runtime::Quote;

template <class... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

absl::Status CheckRole(const Config& config) {
  switch (config.role) {
    case Role::kScheduler:
    case Role::kServer:
    case Role::kWorker:
    case Role::kTool:
      return absl::OkStatus();
    case Role::kReader:
      return Invalid("the role is reader: it must be worker, with LEEWAY_READ_ONLY=1");
    case Role::kUnknown:
      break;
  }
  return Invalid("LEEWAY_ROLE is not set: set it to scheduler, server or worker");
}

absl::Status CheckScheduler(const Config& config) {
  if (config.scheduler.empty()) {
    return Invalid("LEEWAY_SCHEDULER is not set: set it to the scheduler's address, host:port");
  }
  const absl::StatusOr<std::string> address = runtime::NormalizeAddress(config.scheduler);
  if (!address.ok()) {
    return Invalid("LEEWAY_SCHEDULER is ", Quote(config.scheduler), ": ",
                   address.status().message());
  }
  // Only the scheduler, which binds the address, may leave the port to the system.
  if (runtime::PortOf(*address) == 0 && config.role != Role::kScheduler) {
    return Invalid("LEEWAY_SCHEDULER is ", Quote(config.scheduler),
                   ": its port must be the one the scheduler listens on, not 0");
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const Config& config) {
  if (!config.rank.has_value()) return absl::OkStatus();
  const bool server = config.role == Role::kServer;
  if (!server && config.role != Role::kWorker) return absl::OkStatus();
  if (!server && config.read_only) return absl::OkStatus();  // a reader has no rank
  const std::uint32_t count = server ? config.num_servers : config.num_workers;
  // An elastic node may have a rank beyond the announced numbers.
  if (*config.rank < count || config.elastic) return absl::OkStatus();
  return Invalid("LEEWAY_RANK is ", *config.rank, ": it must be less than ",
                 server ? "LEEWAY_NUM_SERVERS" : "LEEWAY_NUM_WORKERS", ", which is ", count);
}

absl::Status CheckTexts(const Config& config) {
  if (!config.host.empty()) {
    const absl::StatusOr<std::string> host = runtime::NormalizeHost(config.host);
    if (!host.ok()) {
      return Invalid("LEEWAY_HOST is ", Quote(config.host), ": ", host.status().message());
    }
  }
  if (!runtime::IsVan(config.van)) {
    return Invalid("LEEWAY_VAN is ", Quote(config.van), ": ", runtime::kVanMustBe);
  }
  if (!runtime::IsChecksum(config.checksum)) {
    return Invalid("LEEWAY_CHECKSUM is ", Quote(config.checksum), ": ", runtime::kChecksumMustBe);
  }
  if (!runtime::IsRdmaDevice(config.rdma_device)) {
    return Invalid("LEEWAY_RDMA_DEVICE is ", Quote(config.rdma_device), ": ",
                   runtime::kRdmaDeviceMustBe);
  }
  if (!runtime::IsRdmaMtu(config.rdma_mtu_bytes)) {
    return Invalid("LEEWAY_RDMA_MTU is ", config.rdma_mtu_bytes, ": ", runtime::kRdmaMtuMustBe);
  }
  if (!runtime::ParseLogLevel(config.log_level).has_value()) {
    return Invalid("LEEWAY_LOG is ", Quote(config.log_level),
                   ": it must be debug, info, warning, error or off");
  }
  return absl::OkStatus();
}

// The scheduler sends these paths to the servers; messages carry clean text only.
absl::Status CheckPaths(const Config& config) {
  const std::pair<const char*, const std::string&> told[] = {
      {"LEEWAY_RESTORE", config.restore}, {"LEEWAY_CHECKPOINT_DIR", config.checkpoint_dir}};
  for (const auto& [name, path] : told) {
    if (runtime::IsCleanText(path)) continue;
    return Invalid(name, " is \"", absl::CEscape(path),
                   "\": it must be UTF-8 without control characters");
  }
  return absl::OkStatus();
}

// Checks combinations of settings that are allowed one by one.
absl::Status CheckTogether(const Config& config) {
  if (config.checkpoint_dir.empty() &&
      (config.checkpoint_every_s != 0 || config.checkpoint_every_clocks != 0)) {
    return Invalid("LEEWAY_CHECKPOINT_EVERY_S or LEEWAY_CHECKPOINT_EVERY_CLOCKS is set, but ",
                   "LEEWAY_CHECKPOINT_DIR does not say where to save");
  }
  if (config.checkpoint_dir.empty() && config.checkpoint_at_end) {
    return Invalid("LEEWAY_CHECKPOINT_AT_END is set, but LEEWAY_CHECKPOINT_DIR does not say where ",
                   "to save");
  }
  if (config.failure_timeout < 2 * config.heartbeat_interval) {
    return Invalid("LEEWAY_FAILURE_TIMEOUT_MS is ",
                   absl::ToDoubleMilliseconds(config.failure_timeout),
                   ": it must be at least twice LEEWAY_HEARTBEAT_INTERVAL_MS, which is ",
                   absl::ToDoubleMilliseconds(config.heartbeat_interval));
  }
  if (config.message_bytes_max < config.block_bytes) {
    return Invalid("LEEWAY_MESSAGE_BYTES_MAX is ", config.message_bytes_max,
                   ": it must be at least LEEWAY_BLOCK_BYTES, which is ", config.block_bytes);
  }
  const std::uint64_t threads = std::uint64_t{config.num_servers} * config.server_threads;
  if (config.num_shards == 0 &&
      threads * runtime::kShardsPerServerThread > runtime::kConfigShardsMax) {
    return Invalid("LEEWAY_NUM_SHARDS is 0: with ", threads, " data threads it must be set, to a",
                   " whole number from 1 to ", runtime::kConfigShardsMax);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Config::Validate() const {
  LEEWAY_RETURN_IF_ERROR(CheckRole(*this));
  LEEWAY_RETURN_IF_ERROR(CheckScheduler(*this));
  for (const NumberSetting& setting : runtime::NumberSettings()) {
    if (!setting.IsAllowed(*this)) {
      return Invalid(setting.name, " is ", setting.Show(*this), ": ", setting.MustBe());
    }
  }
  LEEWAY_RETURN_IF_ERROR(CheckRank(*this));
  LEEWAY_RETURN_IF_ERROR(CheckTexts(*this));
  LEEWAY_RETURN_IF_ERROR(CheckPaths(*this));
  return CheckTogether(*this);
}

}  // namespace leeway
