// A TableSettingsSchedule holds which settings of a table hold in which clock. Settings that do not
// shape a table's data can be changed during use, from one clock on for all (docs/consistency.md).
// Each worker and each data thread has one for a table, and uses it on its loop.
#ifndef LEEWAY_PROTO_MESSAGES_TABLE_SETTINGS_SCHEDULE_H_
#define LEEWAY_PROTO_MESSAGES_TABLE_SETTINGS_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "leeway/table_spec.h"
#include "proto/messages/messages.h"

namespace leeway::proto {

// The settings within a description, and a description with other settings.
TableSettings TableSettingsOf(const TableSpec& spec);
TableSpec WithTableSettings(TableSpec spec, const TableSettings& settings);

// The settings of one table, in their order in a map or a reply.
std::span<const TableSettings> TableSettingsOf(std::span<const TableSettings> all,
                                               std::uint32_t table);

class TableSettingsSchedule {
 public:
  // Takes over the table's settings of the newest map.
  void Follow(std::span<const TableSettings> settings) {
    settings_.assign(settings.begin(), settings.end());
  }

  // The settings that hold in that clock, as far as that is decided; null: those at the table's
  // creation. Announced settings may be put off: a worker that was in such a clock already is still
  // answered by the settings before.
  const TableSettings* At(std::uint64_t clock) const;
  // False if maps no longer have the settings that held in that clock.
  bool Knows(std::uint64_t clock) const;
  // True if settings for that clock are announced and not decided.
  bool UndecidedAt(std::uint64_t clock) const;
  const std::vector<TableSettings>& all() const { return settings_; }

 private:
  std::vector<TableSettings> settings_;
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_TABLE_SETTINGS_SCHEDULE_H_
