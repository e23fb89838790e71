#include "compat/core/settings.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compat/ps/internal/env.h"
#include "runtime/base/status_macros.h"

namespace leeway::compat {
namespace {

std::optional<std::string> Lookup(const std::string& name) {
  const char* const value = ::ps::Environment::Get()->find(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

bool IsSet(const char* name) { return Lookup(name).value_or("") != ""; }

// The number that a variable of ps-lite has; 0: it is not set.
absl::StatusOr<std::uint32_t> NumberOf(const char* name) {
  std::uint32_t number = 0;
  if (IsSet(name) && !absl::SimpleAtoi(*Lookup(name), &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is \"", *Lookup(name), "\": it must be a whole number"));
  }
  return number;
}

// ps-lite says nothing unless it is asked to.
const char* LogLevelOf(std::uint32_t verbose) {
  return verbose == 0 ? "warning" : verbose == 1 ? "info" : "debug";
}

}  // namespace

absl::StatusOr<Config> ReadConfig() {
  LEEWAY_ASSIGN_OR_RETURN(Config config, Config::From(Lookup));
  LEEWAY_ASSIGN_OR_RETURN(const std::uint32_t verbose, NumberOf("PS_VERBOSE"));
  if (!IsSet("LEEWAY_LOG")) config.log_level = LogLevelOf(verbose);
  LEEWAY_ASSIGN_OR_RETURN(const std::uint32_t interval_s, NumberOf("PS_HEARTBEAT_INTERVAL"));
  if (interval_s > 0 && !IsSet("LEEWAY_HEARTBEAT_INTERVAL_MS")) {
    config.heartbeat_interval = absl::Seconds(interval_s);
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::uint32_t timeout_s, NumberOf("PS_HEARTBEAT_TIMEOUT"));
  if (timeout_s > 0 && !IsSet("LEEWAY_FAILURE_TIMEOUT_MS")) {
    config.failure_timeout = absl::Seconds(timeout_s);
  }
  LEEWAY_ASSIGN_OR_RETURN(const std::uint32_t port, NumberOf("PORT"));
  if (port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("PORT is \"", port, "\": it must be the number of a port, at most 65535"));
  }
  if (port > 0 && config.role == Role::kServer && !IsSet("LEEWAY_PORT") &&
      config.server_threads == 1) {
    config.ports = {static_cast<std::uint16_t>(port), static_cast<std::uint16_t>(port)};
  }
  if (config.role != Role::kScheduler && config.role != Role::kServer &&
      config.role != Role::kWorker) {
    return absl::InvalidArgumentError(
        "DMLC_ROLE (or LEEWAY_ROLE) is not set: it must be scheduler, server or worker");
  }
  const std::string tables = Lookup("LEEWAY_PS_TABLES").value_or("1");
  if (tables != "0" && tables != "1") {
    return absl::InvalidArgumentError(
        absl::StrCat("LEEWAY_PS_TABLES is \"", tables, "\": it must be 0 or 1"));
  }
  LEEWAY_RETURN_IF_ERROR(config.Validate());
  return config;
}

absl::StatusOr<TableSettings> ReadTableSettings() {
  TableSettings settings;
  std::uint64_t width = 0;
  const std::string width_text = Lookup("LEEWAY_PS_ROW_WIDTH").value_or("0");
  if (!absl::SimpleAtoi(width_text, &width)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "LEEWAY_PS_ROW_WIDTH is \"", width_text,
        "\": it must be the number of values of each key, or 0 where keys differ in it"));
  }
  settings.spec = width == 0 ? TableSpec::Ragged("") : TableSpec::Sparse("", width);
  settings.spec.updater.name = "add";
  const std::string consistency = Lookup("LEEWAY_PS_CONSISTENCY").value_or("asp");
  const absl::StatusOr<Consistency> parsed = Consistency::Parse(consistency);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("LEEWAY_PS_CONSISTENCY is \"", consistency,
                                                   "\": ", parsed.status().message()));
  }
  settings.spec.consistency = *parsed;
  settings.spec.codec = Lookup("LEEWAY_PS_CODEC").value_or("none");
  if (settings.spec.codec != "none" && width == 0) {
    return absl::InvalidArgumentError(
        "LEEWAY_PS_CODEC needs LEEWAY_PS_ROW_WIDTH, the number of values of each key: rows of "
        "different widths have no codecs");
  }
  const std::string pushes = Lookup("LEEWAY_PS_PUSHES_PER_CLOCK").value_or("1");
  if (!absl::SimpleAtoi(pushes, &settings.pushes_per_clock) || settings.pushes_per_clock == 0) {
    return absl::InvalidArgumentError(absl::StrCat("LEEWAY_PS_PUSHES_PER_CLOCK is \"", pushes,
                                                   "\": it must be a whole number from 1 on"));
  }
  if (*parsed == Consistency::Asp()) settings.pushes_per_clock = 0;  // it has no clocks to end
  return settings;
}

bool UsesTables() { return Lookup("LEEWAY_PS_TABLES").value_or("1") != "0"; }

}  // namespace leeway::compat

namespace ps {

Environment* Environment::Get() {
  static Environment* const environment = new Environment;
  return environment;
}

Environment* Environment::Init(const std::unordered_map<std::string, std::string>& variables) {
  Get()->variables_ = variables;
  return Get();
}

const char* Environment::find(const char* name) {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::getenv(name) : found->second.c_str();
}

}  // namespace ps
