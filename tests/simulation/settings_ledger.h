// Which settings hold from which clock on in each table of a simulated run, by what schedulers have
// said in their maps, and by which settings servers have applied each push: all shards of a table
// change at one clock.
//
// A change is decided once, and no later map is without it, also where another scheduler goes on.
// A push that is applied at once is logged with the settings of its clock, whether the decision was
// there before it or comes after it. Pushes of workers that were killed, or are being taken for
// dead, are passed over.
#ifndef LEEWAY_TESTS_SIMULATION_SETTINGS_LEDGER_H_
#define LEEWAY_TESTS_SIMULATION_SETTINGS_LEDGER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "proto/messages/messages.h"
#include "proto/messages/replication_messages.h"
#include "tests/simulation/history.h"

namespace leeway::simulation {

class SettingsLedger {
 public:
  explicit SettingsLedger(const History* history) : history_(history) {}

  // A scheduler sends that map. What is wrong with it; empty: nothing.
  std::string OnMap(const proto::ClusterMap& map);
  // A server tells another one what it has applied. Likewise.
  std::string OnEntry(const proto::Replicate& entry);

 private:
  struct Pusher {
    std::uint32_t settings = 0;  // the number of those that its pushes were applied with
    std::uint32_t rank = 0;
    std::uint64_t known_as = 0;  // by which servers know the incarnation
    friend auto operator<=>(const Pusher&, const Pusher&) = default;
  };
  struct Table {
    std::map<std::uint32_t, proto::TableSettings> decided;  // by number
    std::map<Pusher, std::uint64_t> newest;                 // clock that was pushed in
  };

  static std::string OnDecision(Table* table, const proto::TableSettings& settings);
  std::string Judge(const Table& table, const Pusher& pusher, std::uint64_t clock) const;

  const History* const history_;
  std::map<std::uint32_t, Table> tables_;
  std::uint64_t version_ = 0;  // of the newest map
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_SETTINGS_LEDGER_H_
