#include "proto/messages/table_settings_schedule.h"

#include <algorithm>
#include <utility>

namespace leeway::proto {

TableSettings TableSettingsOf(const TableSpec& spec) {
  TableSettings settings;
  settings.parameters = spec.updater.parameters;
  settings.consistency = spec.consistency;
  settings.nonfinite = spec.nonfinite;
  return settings;
}

TableSpec WithTableSettings(TableSpec spec, const TableSettings& settings) {
  spec.updater.parameters = settings.parameters;
  spec.consistency = settings.consistency;
  spec.nonfinite = settings.nonfinite;
  return spec;
}

std::span<const TableSettings> TableSettingsOf(std::span<const TableSettings> all,
                                               std::uint32_t table) {
  const auto [first, last] = std::equal_range(
      all.begin(), all.end(), TableSettings{.table = table},
      [](const TableSettings& a, const TableSettings& b) { return a.table < b.table; });
  return {first, last};
}

const TableSettings* TableSettingsSchedule::At(std::uint64_t clock) const {
  const TableSettings* found = nullptr;
  // A map no longer has settings that were changed long ago.
  if (!settings_.empty() && settings_.front().number > 1) found = &settings_.front();
  for (const TableSettings& settings : settings_) {
    if (settings.decided && settings.since <= clock) found = &settings;
  }
  return found;
}

bool TableSettingsSchedule::Knows(std::uint64_t clock) const {
  return settings_.empty() || settings_.front().number == 1 || clock >= settings_.front().since;
}

bool TableSettingsSchedule::UndecidedAt(std::uint64_t clock) const {
  return std::any_of(settings_.begin(), settings_.end(), [clock](const TableSettings& settings) {
    return !settings.decided && settings.since <= clock;
  });
}

}  // namespace leeway::proto
