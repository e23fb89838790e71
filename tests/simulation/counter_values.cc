#include "tests/simulation/counter_values.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

namespace leeway::simulation {
namespace {

std::vector<std::int64_t> CountsIn(const SimTable& table, DType dtype, const ps::FrozenRow& row,
                                   std::uint32_t scale) {
  const std::size_t bytes = std::min(row.values.size(), table.width * SizeOf(dtype));
  std::vector<std::int64_t> counts(table.width);
  if (table.converts()) {
    counts = ToCounts(table, dtype, row.values.first(bytes), scale);
    counts.resize(table.width);
  } else {
    std::memcpy(counts.data(), row.values.data(), bytes);
  }
  return counts;
}

}  // namespace

const SimTable* TableNamed(const std::vector<SimTable>& tables, const std::string& name) {
  const auto found = std::find_if(tables.begin(), tables.end(),
                                  [&](const SimTable& table) { return table.spec.name == name; });
  return found == tables.end() ? nullptr : &*found;
}

void CounterValues::Take(const SimTable& table, const std::vector<ps::FrozenPiece>& pieces) {
  for (const ps::FrozenPiece& piece : pieces) {
    ps::ForEachRow(piece, [&](const ps::FrozenRow& row) {
      const std::optional<std::uint32_t> place = PlaceOf(table, row.key);
      if (place.has_value()) values_[{table.index, *place}] = CountsIn(table, piece.dtype, row, 1);
    });
  }
}

void CounterValues::Add(const SimTable& table, const std::vector<ps::FrozenPiece>& pieces) {
  for (const ps::FrozenPiece& piece : pieces) {
    ps::ForEachRow(piece, [&](const ps::FrozenRow& row) {
      const std::optional<std::uint32_t> place = PlaceOf(table, row.key);
      if (!place.has_value()) return;
      std::vector<std::int64_t>& sums = values_[{table.index, *place}];
      sums.resize(table.width);
      const std::vector<std::int64_t> more = CountsIn(table, piece.dtype, row, table.mean_of);
      std::ranges::transform(sums, more, sums.begin(), std::plus<>());
    });
  }
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
