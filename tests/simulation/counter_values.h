// CounterValues holds the servers' values of the counter tables of a simulated run, by table and
// place.
#ifndef LEEWAY_TESTS_SIMULATION_COUNTER_VALUES_H_
#define LEEWAY_TESTS_SIMULATION_COUNTER_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ps/store/frozen_piece.h"
#include "tests/simulation/sim_table.h"

namespace leeway::simulation {

// Null: there is no table of that name.
const SimTable* TableNamed(const std::vector<SimTable>& tables, const std::string& name);

class CounterValues {
 public:
  // Takes the rows of a counter table, in place of the ones before.
  void Take(const SimTable& table, const std::vector<ps::FrozenPiece>& pieces);
  // Adds what is collected, once the rows are there.
  void Add(const SimTable& table, const std::vector<ps::FrozenPiece>& pieces);
  // `table.width` elements; zeros for a place that Take did not get.
  std::vector<std::int64_t> Of(const SimTable& table, std::uint32_t place) const;
  int TimesApplied(const SimTable& table, std::uint32_t place, std::uint32_t worker,
                   std::size_t number) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::int64_t>> values_;
};

}  // namespace leeway::simulation

#endif  // LEEWAY_TESTS_SIMULATION_COUNTER_VALUES_H_
