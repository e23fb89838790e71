// Changes of what does not shape a table's data (proto::TableSettings), while the table is used:
// each holds for everybody from one clock on.
//
// The servers are asked first whether they can do it. Then it is announced in the cluster map and
// decided like a change of a codec (codec_switches.h): workers keep what belongs to the clock and
// later until it is, and get a map once all servers have it. So each server knows the settings of a
// clock before it is asked for anything of it. docs/consistency.md, "Changing a table".
//
// Knows no network. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_TABLES_TABLE_CHANGES_H_
#define LEEWAY_SCHEDULER_TABLES_TABLE_CHANGES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "scheduler/tables/codec_switches.h"
#include "scheduler/tables/table_catalogue.h"

namespace leeway::scheduler {

class TableChanges {
 public:
  using Send = std::function<void(std::uint32_t server, const proto::AnyMessage&)>;
  // With the clock from which on the settings hold.
  using Done = std::function<void(const absl::StatusOr<std::uint64_t>&)>;

  // `members` as for the catalogue; `timeout`: how long servers may take to answer.
  TableChanges(const TableCatalogue::Members* members, absl::Duration resend_interval,
               absl::Duration timeout, Send send, CodecSwitches::Workers workers,
               CodecSwitches::Changed changed);

  // The table gets what `wanted` says, which is alike but for what does not shape the data.
  // `trial`: an id that no table has. `from`: nobody uses the table, and it holds from that clock
  // on; none: from one that nobody has reached.
  // ABORTED: another change of it is under way. FAILED_PRECONDITION: the table cannot be changed
  // so.
  void Change(const TableCatalogue::Entry& table, const TableSpec& wanted, std::uint32_t trial,
              std::optional<std::uint64_t> from, absl::Time now, Done done);
  // Also where the scheduler that was asked for it is no more.
  bool changing(std::uint32_t table) const {
    return pending_.contains(table) || Announced(table) != nullptr;
  }

  // Whether it was an answer to what was asked here.
  bool OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply);
  // Some servers have gone and are no longer waited for.
  void ServersChanged();
  // Asks servers that have not answered again; ends changes whose time is up.
  void Tick(absl::Time now);

  // As of codecs.
  void Published(std::uint64_t version) { switches_.Published(version); }
  void OnAck(std::uint32_t worker, std::uint64_t version, std::uint64_t clock) {
    switches_.OnAck(worker, version, clock);
  }
  void WorkersChanged() { switches_.WorkersChanged(); }
  void AnnounceAgain() { switches_.Tick(); }

  // The description as it holds in the newest clock for which that is decided.
  TableSpec SpecOf(const TableCatalogue::Entry& table) const;
  // Whether workers of it are in several clocks at a time and yet bounded, by some settings that it
  // has or had: also by those that are too old to be told.
  bool IsEverBounded(const TableCatalogue::Entry& table) const;
  const std::set<std::uint32_t>& ever_bounded() const { return ever_bounded_; }  // by a change
  // For the map: by table, then number.
  std::vector<proto::TableSettings> entries() const;
  std::vector<proto::TableSettings> EntriesOf(std::uint32_t table) const;
  // Goes on where another scheduler was.
  void Restore(const std::vector<proto::TableSettings>& entries,
               const std::set<std::uint32_t>& ever_bounded);
  // Grows whenever entries() changes.
  std::uint64_t changes() const { return changes_ + switches_.changes(); }

 private:
  struct Pending {
    std::string name;
    proto::InstallTable asked;        // of the servers
    std::set<std::uint32_t> awaited;  // of which have not answered
    bool accepted = false;            // by one at least
    std::optional<std::uint64_t> from;
    absl::Time resend_at, deadline;
    Done done;
    bool agreed = false;  // by the servers: it is announced
  };

  bool AskedForAgain(const TableCatalogue::Entry& table, const TableSpec& wanted,
                     std::optional<std::uint64_t> from) const;
  // The settings of the table that are announced and not decided; null: none.
  const proto::TableSettings* Announced(std::uint32_t table) const;
  void Fail(std::uint32_t table, const absl::Status& why);
  void AnnounceIfAgreed(std::uint32_t table);
  void Add(const proto::TableSettings& settings);
  void Decided(std::uint32_t table, std::uint64_t clock);

  const TableCatalogue::Members* const members_;
  const absl::Duration resend_interval_, timeout_;
  const Send send_;
  const CodecSwitches::Changed changed_;
  CodecSwitches switches_;                                               // numbers of settings
  std::map<std::uint32_t, std::vector<proto::TableSettings>> settings_;  // by table
  std::set<std::uint32_t> ever_bounded_;                                 // tables
  std::map<std::uint32_t, Pending> pending_;                             // by table
  std::uint64_t changes_ = 0;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_TABLE_CHANGES_H_
