// The settings of a table in each clock, as changed since it was created (docs/consistency.md,
// "Changing a table").
//
// One for each table that a worker has opened. Lives on the core's loop, in Tables.
#ifndef LEEWAY_WORKER_SLICING_LIVE_TABLE_SETTINGS_H_
#define LEEWAY_WORKER_SLICING_LIVE_TABLE_SETTINGS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leeway/consistency.h"
#include "leeway/table_spec.h"
#include "proto/messages/table_settings_schedule.h"

namespace leeway::worker {

class LiveTableSettings {
 public:
  explicit LiveTableSettings(const Consistency& created) : created_(created) {}

  // Takes what a map says. Ignores an older state than is known.
  void Follow(std::span<const proto::TableSettings> settings) {
    if (!IsOlder(settings)) schedule_.Follow(settings);
  }

  // Takes what the answer says that opened the table. It may be ahead of the map and so of servers,
  // which get maps before workers: what is new in it counts as undecided until a map has it.
  void Hear(std::span<const proto::TableSettings> settings) {
    if (IsOlder(settings)) return;
    // The answer may be late: it does not take back what a map has said is decided.
    const auto& known = schedule_.all();
    if (!known.empty() && known.back().decided && known.back().number == settings.back().number) {
      return;
    }
    std::vector<proto::TableSettings> heard(settings.begin(), settings.end());
    for (proto::TableSettings& one : heard) one.decided = one.decided && IsDecided(one.number);
    schedule_.Follow(heard);
  }

  Consistency ConsistencyAt(std::uint64_t clock) const {
    const proto::TableSettings* const settings = schedule_.At(clock);
    return settings == nullptr ? created_ : settings->consistency;
  }
  // The updater's `learning_rate` in that clock; none: what the table was created with.
  std::optional<double> LearningRateAt(std::uint64_t clock) const {
    const proto::TableSettings* const settings = schedule_.At(clock);
    if (settings == nullptr) return std::nullopt;
    const auto found = settings->parameters.find("learning_rate");
    return found == settings->parameters.end() ? 1 : found->second;
  }
  // None: what the table was created with.
  std::optional<NonFinite> NonFiniteAt(std::uint64_t clock) const {
    const proto::TableSettings* const settings = schedule_.At(clock);
    if (settings == nullptr) return std::nullopt;
    return settings->nonfinite;
  }
  // Whether the settings of that clock are being decided: no request of it may be sent yet.
  bool UndecidedAt(std::uint64_t clock) const { return schedule_.UndecidedAt(clock); }

 private:
  bool IsOlder(std::span<const proto::TableSettings> settings) const {
    const auto& known = schedule_.all();
    return settings.empty() || (!known.empty() && known.back().number > settings.back().number);
  }
  bool IsDecided(std::uint32_t number) const {
    const auto& known = schedule_.all();
    return std::any_of(known.begin(), known.end(), [&](const proto::TableSettings& one) {
      return one.number == number && one.decided;
    });
  }

  const Consistency created_;
  proto::TableSettingsSchedule schedule_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_LIVE_TABLE_SETTINGS_H_
