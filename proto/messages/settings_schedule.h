// Which of a table's settings hold in which clock: what does not shape a table's data may be
// changed while it is used, from one clock on for everybody (docs/consistency.md).
#ifndef LEEWAY_PROTO_MESSAGES_SETTINGS_SCHEDULE_H_
#define LEEWAY_PROTO_MESSAGES_SETTINGS_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "leeway/table_spec.h"
#include "proto/messages/messages.h"

namespace leeway::proto {

// The part of a description that settings are.
TableSettings SettingsOf(const TableSpec& spec);
TableSpec WithSettings(TableSpec spec, const TableSettings& settings);

// Those of one table, in the order in which they stand in a map or a reply.
std::span<const TableSettings> SettingsOf(std::span<const TableSettings> all, std::uint32_t table);

class SettingsSchedule {
 public:
  // Takes what the newest map says of the table.
  void Follow(std::span<const TableSettings> settings) {
    settings_.assign(settings.begin(), settings.end());
  }

  // Those that hold in that clock, as far as that is decided; null: what the table was created
  // with. What is announced may be put off: a worker that was in such a clock already is still
  // answered by the settings before.
  const TableSettings* At(std::uint64_t clock) const;
  // Whether settings for that clock are announced and not decided.
  bool UndecidedAt(std::uint64_t clock) const;
  const std::vector<TableSettings>& all() const { return settings_; }

 private:
  std::vector<TableSettings> settings_;
};

}  // namespace leeway::proto

#endif  // LEEWAY_PROTO_MESSAGES_SETTINGS_SCHEDULE_H_
