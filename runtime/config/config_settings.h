// NumberSettings is the table of all numeric settings: names, fields of Config, ranges and units.
// The functions below check the values of the others. Any thread.
#ifndef LEEWAY_RUNTIME_CONFIG_CONFIG_SETTINGS_H_
#define LEEWAY_RUNTIME_CONFIG_CONFIG_SETTINGS_H_

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "leeway/config.h"

namespace leeway::runtime {

// Limits of settings. proto/messages/limits.h has the same numbers as limits of messages; this
// folder must not include it.
inline constexpr std::uint64_t kConfigServersMax = 4096;
inline constexpr std::uint64_t kConfigWorkersMax = 65536;
inline constexpr std::uint64_t kConfigServerThreadsMax = 256;
inline constexpr std::uint64_t kConfigShardsMax = 1 << 20;
inline constexpr std::uint64_t kConfigReplicationMax = 8;
inline constexpr std::uint64_t kConfigVersionsKeptMax = 64;
inline constexpr std::uint64_t kConfigBlockBytesMin = 4096;
inline constexpr std::uint64_t kConfigBlockBytesMax = 256 << 20;

// Used where Config::num_shards is 0.
inline constexpr std::uint64_t kShardsPerServerThread = 32;

struct NumberSetting {
  const char* name;
  const char* alias;  // the variable of ps-lite that means the same; null: none
  std::variant<std::uint32_t Config::*, std::uint64_t Config::*, absl::Duration Config::*> field;
  std::uint64_t min;
  std::uint64_t max;
  const char* unit;  // "", " of bytes", " of milliseconds" (durations)

  void Set(std::uint64_t value, Config* config) const;
  bool IsAllowed(const Config& config) const;
  std::string Show(const Config& config) const;
  std::string MustBe() const;  // "it must be a whole number …"
};

std::span<const NumberSetting> NumberSettings();

// The value of a setting as a message shows it: quoted, escaped to one line, cut after 100 bytes.
std::string Quote(absl::string_view value);

// Whether `value` is allowed for Config::van.
bool IsVan(absl::string_view value);
bool IsChecksum(absl::string_view value);
// True for the MTUs of RDMA (256, 512, 1024, 2048 and 4096 bytes) and for 0: not set.
bool IsRdmaMtu(std::uint64_t bytes);
bool IsRdmaDevice(absl::string_view name);
inline constexpr const char* kRdmaMtuMustBe = "it must be 0, 256, 512, 1024, 2048 or 4096";
inline constexpr const char* kRdmaDeviceMustBe =
    "it must be the name of an rdma device, like mlx5_0";
inline constexpr const char* kChecksumMustBe = "it must be auto, on or off";
inline constexpr const char* kVanMustBe = "it must be auto, shm, tcp, rdma or zmq";

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_CONFIG_CONFIG_SETTINGS_H_
