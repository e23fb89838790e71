// A SettingsLedger records which settings hold from which clock on in each table of a simulated
// run, by the schedulers' maps, and checks the settings that servers apply each push with: all
// shards of a table change at one clock.
//
// A change is decided once, and every later map has it, also if another scheduler goes on. A push
// that is applied at once is logged with the settings of its clock, whether the decision came
// before or after it. Pushes of workers that were killed, or are being taken for dead, are not
// checked.
#ifndef LEEWAY_TESTS_SIMULATION_TABLE_SETTINGS_LEDGER_H_
#define LEEWAY_TESTS_SIMULATION_TABLE_SETTINGS_LEDGER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "proto/messages/messages.h"
#include "proto/messages/replication_messages.h"
#include "tests/simulation/history.h"

namespace leeway::simulation {

class TableSettingsLedger {
 public:
  explicit TableSettingsLedger(const History* history) : history_(history) {}

  // A scheduler sends that map. Returns what is wrong with it; empty: nothing.
  std::string OnMap(const proto::ClusterMap& map);
  // A server sends an applied entry to another one. Likewise.
  std::string OnEntry(const proto::Replicate& entry);

 private:
  struct Pusher {
    std::uint32_t settings = 0;  // the number of those that its pushes were applied with
    std::uint32_t rank = 0;
    std::uint64_t known_as = 0;  // the incarnation's number at servers
    friend auto operator<=>(const Pusher&, const Pusher&) = default;
  };
  struct Table {
    std::map<std::uint32_t, proto::TableSettings> decided;  // by number
    std::map<Pusher, std::uint64_t> newest;                 // clock of the last push
  };

  static std::string OnDecision(Table* table, const proto::TableSettings& settings);
  std::string Judge(const Table& table, const Pusher& pusher, std::uint64_t clock) const;

  const History* const history_;
  std::map<std::uint32_t, Table> tables_;
  std::uint64_t version_ = 0;  // of the newest map
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_TABLE_SETTINGS_LEDGER_H_
