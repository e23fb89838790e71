// What holds for a table in each clock, where that has been changed since it was created
// (docs/consistency.md, "Changing a table"). One for each table that a worker has opened.
#ifndef LEEWAY_WORKER_SLICING_LIVE_SETTINGS_H_
#define LEEWAY_WORKER_SLICING_LIVE_SETTINGS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "leeway/consistency.h"
#include "proto/messages/settings_schedule.h"
#include "runtime/base/mutants.h"

namespace leeway::worker {

class LiveSettings {
 public:
  explicit LiveSettings(const Consistency& created) : created_(created) {}

  // What a map says; older news than is known is ignored.
  void Follow(std::span<const proto::TableSettings> settings) {
    if (!IsOlder(settings)) schedule_.Follow(settings);
  }

  // What the answer that opened the table says. It may be ahead of the map, and so of servers, who
  // have a map before workers do: nothing is asked for by what is new in it before a map has that.
  void Hear(std::span<const proto::TableSettings> settings) {
    if (IsOlder(settings)) return;
    // An answer may be late: it does not take back what a map has said is decided.
    const auto& known = schedule_.all();
    if (!runtime::Planted<"late-answer-takes-back">() && !known.empty() && known.back().decided &&
        known.back().number == settings.back().number) {
      return;
    }
    std::vector<proto::TableSettings> heard(settings.begin(), settings.end());
    for (proto::TableSettings& one : heard) one.decided = one.decided && IsDecided(one.number);
    schedule_.Follow(heard);
  }

  Consistency ConsistencyAt(std::uint64_t clock) const {
    Consistency consistency = created_;
    if (const proto::TableSettings* const settings = schedule_.At(clock)) {
      consistency.staleness = settings->staleness;
    }
    return consistency;
  }
  // The updater's `learning_rate` in that clock; none: what the table was created with.
  std::optional<double> LearningRateAt(std::uint64_t clock) const {
    const proto::TableSettings* const settings = schedule_.At(clock);
    if (settings == nullptr) return std::nullopt;
    const auto found = settings->parameters.find("learning_rate");
    return found == settings->parameters.end() ? 1 : found->second;
  }
  // Nothing of that clock may be asked for yet.
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
  proto::SettingsSchedule schedule_;
};

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_SLICING_LIVE_SETTINGS_H_
