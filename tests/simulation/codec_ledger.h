// Which codec holds from which clock on in each table of a simulated run, by what schedulers have
// said in their maps, and by which codec every push has left: all workers switch at one clock.
//
// A switch is decided once, also where another scheduler goes on: all maps say the same of its
// number. A push that is encoded names the codec of its clock, whether the decision was there
// before it or comes after it; one that travels as it is may do so where that codec allows it. What
// a worker does that was killed, or is being taken for dead, is not asked.
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

  // A scheduler sends that map, at that time. What is wrong with it; empty: nothing.
  std::string OnMap(const proto::ClusterMap& map, absl::Time now);

  // How a push has left its worker.
  struct Left {
    std::uint32_t rank = 0;
    std::uint64_t known_as = 0;  // by which servers know the incarnation
    std::uint64_t clock = 0;
    compress::CodecId codec = compress::kNoCodec;
    // Where it is not encoded: bits, by choice, of the codecs under which it need not be.
    std::uint32_t plain_under = 0;
    friend auto operator<=>(const Left&, const Left&) = default;
  };
  std::string OnPush(std::uint32_t id, const Left& push);

  // The index in SimTable::codecs that holds in that clock, as far as it is decided.
  std::uint32_t ChoiceAt(std::uint32_t id, std::uint64_t clock) const;
  // Those that a server may go by in that clock, whose newest map is not older than `since`.
  std::vector<std::uint32_t> ChoicesAt(std::uint32_t id, std::uint64_t clock,
                                       absl::Time since) const;
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
