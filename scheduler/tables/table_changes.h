// The changes of tables' settings (proto::TableSettings, which do not shape the data) while the
// tables are used: each takes effect for all nodes at one clock.
//
// The servers are asked first whether they can do it. Then the change is announced in the cluster
// map and decided like a switch of a codec (codec_switches.h): until then workers hold back their
// requests of that clock and later, and they get the map once all servers have it. So each server
// knows the settings of a clock before it gets requests of it. docs/consistency.md, "Changing a
// table".
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

  // `timeout`: how long servers may take to answer. `changed` as for CodecSwitches.
  TableChanges(const MembershipTable* members, absl::Duration resend_interval,
               absl::Duration timeout, Send send, CodecSwitches::Changed changed);

  // Gives the table the settings in `wanted`, which describes data of the same shape.
  // `trial`: an id that no table has. `from`: no worker uses the table, and the settings hold from
  // that clock on; nullopt: from one that no worker has reached.
  // ABORTED: another change of it is under way. FAILED_PRECONDITION: the table cannot be changed
  // so.
  void Change(const TableCatalogue::Entry& table, const TableSpec& wanted, std::uint32_t trial,
              std::optional<std::uint64_t> from, absl::Time now, Done done);
  // True, too, if the change was asked for before a restart of the scheduler.
  bool changing(std::uint32_t table) const {
    return pending_.contains(table) || Announced(table) != nullptr;
  }

  // True if it answers a change that was asked for here.
  bool OnInstalled(std::uint32_t server, const proto::InstallTableReply& reply);
  // Some servers have gone and are no longer waited for.
  void ServersChanged();
  // Asks servers that have not answered again; ends changes whose time is up.
  void Tick(absl::Time now);

  // As CodecSwitches.
  void Published(std::uint64_t version) { switches_.Published(version); }
  void OnAck(std::uint32_t worker, std::uint64_t version, std::uint64_t clock,
             std::uint64_t oldest);
  void OnLeave(std::uint32_t worker, std::uint64_t clock) { switches_.OnLeave(worker, clock); }
  void WorkersChanged() { switches_.WorkersChanged(); }
  void AnnounceAgain() { switches_.Tick(); }

  // The description as it holds in the newest clock for which that is decided.
  TableSpec SpecOf(const TableCatalogue::Entry& table) const;
  // True if the table's workers are or were in several clocks at a time, with a bound, by any
  // settings that it has or had, old ones included.
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
  void DropUnneeded();

  const MembershipTable* const members_;
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
