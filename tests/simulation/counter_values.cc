#include "tests/simulation/counter_values.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace leeway::simulation {

const SimTable* TableNamed(const std::vector<SimTable>& tables, const std::string& name) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const SimTable& table) { return table.spec.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

void CounterValues::Take(const SimTable& table, const std::vector<ps::FrozenPiece>& pieces) {
  const auto take = [&](const ps::FrozenRow& row) {
    const std::optional<std::uint32_t> place = PlaceOf(table, row.key);
    if (!place.has_value()) return;
    std::vector<std::int64_t>& elements = values_[{table.index, *place}];
    elements.resize(table.width);
    const std::size_t bytes = std::min(row.values.size(), table.width * sizeof(std::int64_t));
    if (!table.refuses()) {
      std::memcpy(elements.data(), row.values.data(), bytes);
      return;
    }
    std::vector<double> doubles(table.width);
    std::memcpy(doubles.data(), row.values.data(), bytes);
    elements = CountsOf(doubles);
  };
  for (const ps::FrozenPiece& piece : pieces) ps::ForEachRow(piece, take);
}

std::vector<std::int64_t> CounterValues::Of(const SimTable& table, std::uint32_t place) const {
  const auto found = values_.find({table.index, place});
  return found == values_.end() ? std::vector<std::int64_t>(table.width) : found->second;
}

int CounterValues::TimesApplied(const SimTable& table, std::uint32_t place, std::uint32_t worker,
                                std::size_t number) const {
  const auto found = values_.find({table.index, place});
  return found == values_.end() ? 0
                                : simulation::TimesApplied(table, found->second, worker, number);
}

}  // namespace leeway::simulation
