#include "runtime/config/config_settings.h"

#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace leeway::runtime {
namespace {

constexpr std::uint64_t kBusyPollMaxUs = 1'000'000;
constexpr std::uint64_t kTiB = 1ull << 40;
constexpr std::uint64_t kHourMs = 3'600'000;
constexpr std::uint64_t kWeekMs = 7 * 24 * kHourMs;
constexpr const char* kOfBytes = " of bytes";
constexpr const char* kMilliseconds = " of milliseconds";

constexpr NumberSetting kSettings[] = {
    {"LEEWAY_NUM_SERVERS", "DMLC_NUM_SERVER", &Config::num_servers, 1, kConfigServersMax, ""},
    {"LEEWAY_NUM_WORKERS", "DMLC_NUM_WORKER", &Config::num_workers, 1, kConfigWorkersMax, ""},
    {"LEEWAY_SERVER_THREADS", nullptr, &Config::server_threads, 1, kConfigServerThreadsMax, ""},
    {"LEEWAY_NUM_SHARDS", nullptr, &Config::num_shards, 0, kConfigShardsMax, ""},
    {"LEEWAY_REPLICATION", nullptr, &Config::replication, 1, kConfigReplicationMax, ""},
    {"LEEWAY_BLOCK_BYTES", nullptr, &Config::block_bytes, kConfigBlockBytesMin,
     kConfigBlockBytesMax, kOfBytes},
    {"LEEWAY_CHECKPOINT_EVERY_S", nullptr, &Config::checkpoint_every_s, 0, kWeekMs, " of seconds"},
    {"LEEWAY_CHECKPOINT_EVERY_CLOCKS", nullptr, &Config::checkpoint_every_clocks, 0, 1ull << 60,
     ""},
    {"LEEWAY_CHECKPOINT_KEEP", nullptr, &Config::checkpoint_keep, 0, 1'000'000, ""},
    {"LEEWAY_VERSIONS_KEPT", nullptr, &Config::versions_kept, 1, kConfigVersionsKeptMax, ""},
    {"LEEWAY_CHECKPOINT_FULL_EVERY", nullptr, &Config::checkpoint_full_every, 1, 64, ""},
    {"LEEWAY_CHECKPOINT_TIMEOUT_MS", nullptr, &Config::checkpoint_timeout, 1, kWeekMs,
     kMilliseconds},
    {"LEEWAY_HEARTBEAT_INTERVAL_MS", nullptr, &Config::heartbeat_interval, 1, kHourMs,
     kMilliseconds},
    {"LEEWAY_FAILURE_TIMEOUT_MS", nullptr, &Config::failure_timeout, 2, kWeekMs, kMilliseconds},
    {"LEEWAY_SUSPICION_MS", nullptr, &Config::suspicion, 1, kWeekMs, kMilliseconds},
    {"LEEWAY_DRAIN_TIMEOUT_MS", nullptr, &Config::drain_timeout, 0, kWeekMs, kMilliseconds},
    {"LEEWAY_SCHEDULER_TIMEOUT_MS", nullptr, &Config::scheduler_timeout, 1, kWeekMs, kMilliseconds},
    {"LEEWAY_CONNECT_TIMEOUT_MS", nullptr, &Config::connect_timeout, 1, kWeekMs, kMilliseconds},
    {"LEEWAY_REQUEST_TIMEOUT_MS", nullptr, &Config::request_timeout, 1, kWeekMs, kMilliseconds},
    {"LEEWAY_RESEND_INTERVAL_MS", nullptr, &Config::resend_interval, 1, kHourMs, kMilliseconds},
    {"LEEWAY_SHM_BYTES", nullptr, &Config::shm_bytes, 1 << 20, 256 << 20, kOfBytes},
    {"LEEWAY_RDMA_BYTES", nullptr, &Config::rdma_bytes, 1 << 20, 1 << 30, kOfBytes},
    {"LEEWAY_RDMA_PORT", nullptr, &Config::rdma_port, 0, 255, ""},
    {"LEEWAY_RDMA_GID_INDEX", nullptr, &Config::rdma_gid_index, 0, 256, ""},
    {"LEEWAY_RDMA_MTU", nullptr, &Config::rdma_mtu_bytes, 0, 4096, kOfBytes},
    {"LEEWAY_BUSY_POLL_US", nullptr, &Config::busy_poll_us, 0, kBusyPollMaxUs, " of microseconds"},
    {"LEEWAY_SEND_WINDOW_BYTES", nullptr, &Config::send_window_bytes, 4096, kTiB, kOfBytes},
    {"LEEWAY_PUSH_WINDOW_BYTES", nullptr, &Config::push_window_bytes, 4096, kTiB, kOfBytes},
    {"LEEWAY_SEND_QUEUE_BYTES_MAX", nullptr, &Config::send_queue_bytes_max, 1 << 20, kTiB,
     kOfBytes},
    {"LEEWAY_MESSAGE_BYTES_MAX", nullptr, &Config::message_bytes_max, 65536, kTiB, kOfBytes},
    {"LEEWAY_RESIDUAL_BYTES_MAX", nullptr, &Config::residual_bytes_max, 1, kTiB, kOfBytes},
    {"LEEWAY_HELD_BYTES_MAX", nullptr, &Config::held_bytes_max, 1, kTiB, kOfBytes},
    {"LEEWAY_TABLE_BYTES_MAX", nullptr, &Config::table_bytes_max, 0, 1024 * kTiB, kOfBytes},
    {"LEEWAY_REPLICATION_WINDOW_BYTES", nullptr, &Config::replication_window_bytes, 4096, kTiB,
     kOfBytes},
    {"LEEWAY_REPLICATION_LOG_BYTES", nullptr, &Config::replication_log_bytes, 4096, kTiB, kOfBytes},
};

template <class T>
constexpr bool kIsDuration = std::is_same_v<T, absl::Duration Config::*>;

}  // namespace

std::span<const NumberSetting> NumberSettings() { return kSettings; }

void NumberSetting::Set(std::uint64_t value, Config* config) const {
  std::visit(
      [&]<class T>(T member) {
        if constexpr (kIsDuration<T>) {
          config->*member = absl::Milliseconds(static_cast<std::int64_t>(value));
        } else {
          config->*member = static_cast<std::remove_reference_t<decltype(config->*member)>>(value);
        }
      },
      field);
}

bool NumberSetting::IsAllowed(const Config& config) const {
  return std::visit(
      [&]<class T>(T member) {
        if constexpr (kIsDuration<T>) {
          return config.*member >= absl::Milliseconds(static_cast<std::int64_t>(min)) &&
                 config.*member <= absl::Milliseconds(static_cast<std::int64_t>(max));
        } else {
          return config.*member >= min && config.*member <= max;
        }
      },
      field);
}

std::string NumberSetting::Show(const Config& config) const {
  return std::visit(
      [&]<class T>(T member) {
        if constexpr (kIsDuration<T>) {
          return absl::StrCat(absl::ToDoubleMilliseconds(config.*member));
        } else {
          return absl::StrCat(config.*member);
        }
      },
      field);
}

std::string NumberSetting::MustBe() const {
  return absl::StrCat("it must be a whole number", unit, " from ", min, " to ", max);
}

bool IsChecksum(absl::string_view value) {
  return value == "auto" || value == "on" || value == "off";
}

bool IsVan(absl::string_view value) {
  return value == "auto" || value == "shm" || value == "tcp" || value == "rdma" || value == "zmq";
}

bool IsRdmaMtu(std::uint64_t bytes) {
  return bytes == 0 || (bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0);
}

bool IsRdmaDevice(absl::string_view name) {
  constexpr std::size_t kDeviceNameBytesMax = 63;  // the kernel's, less its final zero
  return name.size() <= kDeviceNameBytesMax && name.find_first_of("/ \t\r\n") == name.npos;
}

std::string Quote(absl::string_view value) {
  constexpr std::size_t kShownMax = 100;
  const bool cut = value.size() > kShownMax;
  return absl::StrCat("\"", absl::Utf8SafeCEscape(value.substr(0, kShownMax)), cut ? "…" : "",
                      "\"");
}

}  // namespace leeway::runtime
