// A CodecLedger records which codec holds from which clock on in each table of a simulated run, by
// the schedulers' maps, and checks each push's codec against it: all workers switch at one clock.
//
// A switch is decided once, also if another scheduler goes on: all maps agree on its number. An
// encoded push has the codec of its clock, whether the decision came before or after it; a push
// that is not encoded needs a codec that allows that. Workers that were killed, or are being taken
// for dead, are not checked.
#ifndef LEEWAY_TESTS_SIMULATION_CODEC_LEDGER_H_
#define LEEWAY_TESTS_SIMULATION_CODEC_LEDGER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/messages.h"
#include "tests/simulation/history.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

class CodecLedger {
 public:
  explicit CodecLedger(const History* history) : history_(history) {}

  // Workers know the table by that id.
  void Know(std::uint32_t id, const SimTable& table) { tables_[id].table = &table; }

  // A scheduler sends that map, at that time. Returns what is wrong with it; empty: nothing.
  std::string OnMap(const proto::ClusterMap& map, absl::Time now);

  // A push as it has left its worker.
  struct Left {
    std::uint32_t rank = 0;
    std::uint64_t known_as = 0;  // the incarnation's number at servers
    std::uint64_t clock = 0;
    compress::CodecId codec = compress::kNoCodec;
    // If it is not encoded: a bit for each choice whose codec allows that.
    std::uint32_t plain_under = 0;
    friend auto operator<=>(const Left&, const Left&) = default;
  };
  std::string OnPush(std::uint32_t id, const Left& push);

  // The index in SimTable::codecs that holds in that clock, as far as it is decided.
  std::uint32_t ChoiceAt(std::uint32_t id, std::uint64_t clock) const;
  // The indices that a server whose newest map is not older than `since` may use in that clock.
  std::vector<std::uint32_t> ChoicesAt(std::uint32_t id, std::uint64_t clock,
                                       absl::Time since) const;
  // Whether servers may have known before that time that the table's codec was changed at that
  // clock or before.
  bool SwitchedBy(std::uint32_t id, std::uint64_t clock, absl::Time before) const;
  // Switches that were decided.
  std::uint64_t decided() const;

 private:
  struct Decision {
    proto::CodecSwitch change;
    absl::Time told;
  };
  struct Table {
    const SimTable* table = nullptr;
    std::map<std::uint64_t, Decision> decisions;  // by number
    std::set<Left> pushes;
  };

  static std::uint32_t ChoiceAt(const Table& table, std::uint64_t clock);
  std::string OnDecision(Table* table, const proto::CodecSwitch& change, absl::Time now) const;
  std::string Judge(const Table& table, const Left& push) const;

  const History* const history_;
  std::map<std::uint32_t, Table> tables_;  // by id
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_CODEC_LEDGER_H_
