// The tables of one data thread: the description of each, its settings by clock, and its codecs.
// The values lie in the stores of the shards.
#ifndef LEEWAY_PS_TABLE_TABLE_H_
#define LEEWAY_PS_TABLE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compress/codec_schedule.h"
#include "compress/table_codec.h"
#include "proto/messages/table_settings_schedule.h"
#include "ps/consistency/policy.h"
#include "ps/store/shard_store.h"
#include "ps/table/counters.h"
#include "ps/table/inbound.h"

namespace leeway::ps {

// The settings of a table, which do not shape its data, as they hold for some clocks.
struct PreparedTableSettings {
  std::uint32_t number = 0;  // proto::TableSettings::number; 0: as it was created
  TableSpec spec;
  std::unique_ptr<Updater> updater;
  Policy policy;
};

// Whether a table of that description, updated so, can have its consistency. INVALID_ARGUMENT says
// what does not go together.
absl::Status CheckConsistency(const TableSpec& spec, const Updater& updater);

class Table {
 public:
  Table(std::uint32_t id, const TableSpec& spec, std::unique_ptr<Updater> updater)
      : id_(id), codecs_(CodecsOf(spec)) {
    settings_.push_back(NewSettings(0, spec, std::move(updater)));
    NoteConsistency();
  }

  std::uint32_t id() const { return id_; }
  // As it was created. What may change since then is in SettingsAt.
  const TableSpec& spec() const { return settings_.front()->spec; }
  const Updater* updater() const { return settings_.front()->updater.get(); }

  // The settings of that clock. The reference is good for as long as the table is.
  const PreparedTableSettings& SettingsAt(std::uint64_t clock) const;
  // The settings of a push or a pull of that clock, at the head.
  const PreparedTableSettings& SettingsFor(std::uint64_t clock) const;
  // False if the settings of that clock are no longer known.
  bool KnowsSettingsOf(std::uint64_t clock) const { return settings_schedule_.Knows(clock); }
  // The settings of that number, also if they are only announced; null: not known here yet.
  const PreparedTableSettings* FindSettings(std::uint32_t number) const;
  const PreparedTableSettings& newest_settings() const { return SettingsAt(kClockMax); }
  // Pushes are held until their clock closes: the same in all clocks in which there are any.
  bool is_bsp() const { return newest_settings().policy.consistency().is_bsp(); }
  // Pulls wait for the slowest worker, by a bound that the table has.
  bool goes_by_slowest() const { return goes_by_slowest_; }
  // A count of workers closes its clocks.
  bool closes_by_count() const { return closes_by_count_; }
  // Pushes have weights by staleness.
  bool is_weighted() const { return is_weighted_; }
  // Pushes are gradients, which are compensated for their delay.
  bool is_compensated() const { return is_compensated_; }
  // Workers of it may be in several clocks at a time and yet are bounded, by some settings.
  bool is_ever_bounded() const;
  // Takes what the newest map says of it. An error, and it keeps what it has: an updater of this
  // server cannot do what it is asked for.
  absl::Status Follow(std::span<const proto::TableSettings> settings);
  // Whether it could have such settings: the updater's state has to stay as it is, and the
  // consistency to go together with the rest.
  absl::Status CouldHave(const TableSpec& spec, const Updater& updater) const;

  // Whether a request is for a table like this one, and its reply may be sent.
  absl::Status Fits(const proto::Request& request, std::uint64_t message_bytes_max) const;

  // Its codecs, and which of them holds from which clock on.
  const compress::TableCodecs& codecs() const { return codecs_; }
  const compress::CodecSchedule& codec_schedule() const { return schedule_; }
  void Follow(const proto::CodecSwitch& change);

  // The staleness of its replies, which is counted and changes nothing else.
  const StalenessCounts& staleness() const { return staleness_; }
  void CountStaleness(std::uint64_t clocks) const { staleness_.Count(clocks); }
  // That of its pushes, in updates (Consistency::Weight).
  const StalenessCounts& push_staleness() const { return push_staleness_; }
  void CountPushStaleness(std::uint64_t tau) const { push_staleness_.Count(tau); }

  // Whether a request has ever been admitted to it.
  bool asked_for() const { return asked_for_; }
  void NoteAskedFor() { asked_for_ = true; }

 private:
  void NoteConsistency();
  static compress::TableCodecs CodecsOf(const TableSpec& spec);
  static std::unique_ptr<PreparedTableSettings> NewSettings(std::uint32_t number,
                                                            const TableSpec& spec,
                                                            std::unique_ptr<Updater> updater);

  std::uint32_t id_;
  // Of the newest consistency. While workers use the table only its bound changes, but one of a
  // checkpoint may get any other before.
  bool closes_by_count_, goes_by_slowest_, is_weighted_, is_compensated_;
  // By number, the first as it was created. None is ever dropped: stores point to updaters.
  std::vector<std::unique_ptr<PreparedTableSettings>> settings_;
  proto::TableSettingsSchedule settings_schedule_;
  compress::TableCodecs codecs_;
  compress::CodecSchedule schedule_;
  mutable StalenessCounts staleness_, push_staleness_;
  bool asked_for_ = false;
};

class Tables {
 public:
  // OK too where an equal table of that id is installed already.
  absl::Status Install(std::uint32_t id, const TableSpec& spec, std::unique_ptr<Updater> updater);
  // The table was not created after all: another server did not take it. No worker is ever given
  // the id of such a table; if a request has named it all the same the table stays, since what
  // waits here may refer to it.
  void Forget(std::uint32_t id);
  // Takes the codecs of the newest map; those of tables that are not here are ignored.
  void Follow(const std::vector<proto::CodecSwitch>& changes);
  // Likewise of their settings.
  absl::Status Follow(const std::vector<proto::TableSettings>& settings);
  // Null where there is none.
  Table* Find(std::uint32_t id);
  const std::map<std::uint32_t, Table>& all() const { return tables_; }
  // How often settings have come for tables that were here.
  std::uint64_t settings_changes() const { return settings_changes_; }
  // Of some table a count of workers closes, or closed, the clocks.
  bool any_closes_by_count() const { return any_closes_by_count_; }

 private:
  bool any_closes_by_count_ = false;
  std::uint64_t settings_changes_ = 0;
  std::map<std::uint32_t, Table> tables_;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_TABLE_H_
