#include "tests/simulation/sim_table.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/messages/layout.h"
#include "tests/random_operations/plain_updater.h"

namespace leeway::simulation {
namespace {

constexpr std::uint32_t kDenseBlocks = 3;
constexpr std::uint32_t kKeys = 12;
constexpr std::size_t kFloatWidth = 6;

// Parameters under which servers compute the same as plain_updater.h.
UpdaterSpec ChooseOptimizer(runtime::Random* random) {
  UpdaterSpec spec;
  spec.parameters["learning_rate"] = tests::kRate;
  if (random->Below(2) == 0) {
    spec.name = "momentum";
    spec.parameters["momentum"] = tests::kMomentum;
  } else {
    spec.name = "adam";
    spec.parameters["beta1"] = tests::kBeta1;
    spec.parameters["beta2"] = tests::kBeta2;
    spec.parameters["epsilon"] = tests::kEpsilon;
  }
  return spec;
}

void SetPlaces(SimTable* table, const std::string& name, DType dtype, bool dense,
               runtime::Random* random) {
  if (dense) {
    table->places = table->counter ? kDenseBlocks : 1;
    table->stride = kBlockBytes / SizeOf(dtype);
    // The last block is a short one.
    table->spec =
        TableSpec::Dense(name, {(table->places - 1) * table->stride + table->width}, dtype);
    return;
  }
  table->places = kKeys;
  table->stride = table->width;
  table->spec = TableSpec::Sparse(name, table->width, dtype);
  for (std::uint32_t i = 0; i < kKeys; ++i) table->keys.push_back(random->Next());
}

std::size_t ElementOf(const SimTable& table, std::uint32_t rank, std::size_t number) {
  return rank * table.elements_per_worker() + number / table.digits_per_element();
}
int ShiftOf(const SimTable& table, std::size_t number) {
  return static_cast<int>(number % table.digits_per_element()) * kDigitBits;
}

}  // namespace

Consistency ChooseMode(runtime::Random* random) {
  switch (random->Below(3)) {
    case 0:
      return Consistency::Bsp();
    case 1:
      return Consistency::Ssp(1 + random->Below(3));
    default:
      return Consistency::Asp();
  }
}

std::vector<SimTable> ChooseTables(std::uint32_t num_workers, bool ragged,
                                   runtime::Random* random) {
  std::vector<SimTable> tables;
  for (const bool counter : {true, false}) {
    for (const bool dense : {true, false}) {
      SimTable table;
      table.index = static_cast<std::uint32_t>(tables.size());
      table.counter = counter;
      table.one_writer = !counter;
      table.num_workers = num_workers;
      table.width = counter ? num_workers * kElementsPerWorker : kFloatWidth;
      const std::string name =
          absl::StrCat(dense ? "dense" : "sparse", counter ? " counters" : " floats");
      SetPlaces(&table, name, counter ? DType::kInt64 : DType::kFloat32, dense, random);
      if (ragged && counter && !dense) {
        table.spec = TableSpec::Ragged("ragged counters", DType::kInt64);
      }
      table.spec.consistency = ChooseMode(random);
      if (!counter) table.spec.updater = ChooseOptimizer(random);
      tables.push_back(std::move(table));
    }
  }
  return tables;
}

void AddSmallTables(std::uint32_t num_workers, runtime::Random* random,
                    std::vector<SimTable>* tables) {
  const bool bsp_first = random->Below(2) == 0;
  for (const bool first : {true, false}) {
    SimTable table;
    table.index = static_cast<std::uint32_t>(tables->size());
    table.num_workers = num_workers;
    table.small = true;
    table.width = table.stride = num_workers * kElementsPerWorker;
    table.spec = TableSpec::Dense(absl::StrCat("small counters ", first ? 1 : 2), {table.width},
                                  DType::kInt64);
    if (first == bsp_first) {
      table.spec.consistency = Consistency::Bsp();
    } else {
      table.spec.consistency =
          random->Below(2) == 0 ? Consistency::Asp() : Consistency::Ssp(1 + random->Below(3));
    }
    tables->push_back(std::move(table));
  }
}

SimTable LateTable(std::uint32_t index, std::uint32_t num_workers, std::uint32_t iteration,
                   runtime::Random* random) {
  SimTable table;
  table.index = index;
  table.num_workers = num_workers;
  table.created_in = iteration;
  table.width = num_workers * kElementsPerWorker;
  SetPlaces(&table, "late counters", DType::kInt64, random->Below(2) == 0, random);
  // With the first bounded table the clock of checkpoints would mean more from then on.
  table.spec.consistency = random->Below(2) == 0 ? Consistency::Bsp() : Consistency::Asp();
  return table;
}

SimTable PolicyTable(std::uint32_t index, std::uint32_t num_workers, runtime::Random* random) {
  SimTable table;
  table.index = index;
  table.num_workers = num_workers;
  table.width = num_workers * kElementsPerWorker;
  SetPlaces(&table, "policy counters", DType::kInt64, random->Below(2) == 0, random);
  const auto any_count = [&] { return static_cast<std::uint32_t>(1 + random->Below(num_workers)); };
  Consistency& consistency = table.spec.consistency;
  switch (random->Below(6)) {
    case 0:
    case 1:
      consistency = Consistency::Backup(
          any_count(), num_workers,
          random->Below(2) == 0 ? Consistency::Late::kApply : Consistency::Late::kDrop);
      break;
    case 2:
      consistency = Consistency::Softsync(any_count());
      break;
    case 3:
      consistency = Consistency::FedBuff(any_count() + 1);
      break;
    case 4:
      consistency = Consistency::Psp(random->Below(3), any_count());
      break;
    default:
      consistency =
          Consistency::Dssp(static_cast<std::uint32_t>(random->Below(2)), 1 + random->Below(4));
  }
  // Its weights are 1 and 0, so that counters still tell what has been applied.
  if (table.by_arrivals() && random->Below(3) == 0) {
    consistency.weight = Consistency::Weight::kCutOff;
    consistency.b = static_cast<double>(random->Below(4));
  }
  return table;
}

SimTable RefusingTable(std::uint32_t index, std::uint32_t num_workers, runtime::Random* random) {
  SimTable table;
  table.index = index;
  table.num_workers = num_workers;
  table.width = num_workers * kElementsPerWorker;
  const bool dense = random->Below(3) == 0;
  SetPlaces(&table, dense ? "dense finite" : "sparse finite", DType::kFloat64, dense, random);
  table.spec.consistency = ChooseMode(random);
  table.spec.nonfinite = NonFinite::kRefuse;
  return table;
}

std::vector<double> DoublesOf(std::span<const std::int64_t> counts) {
  return {counts.begin(), counts.end()};
}

std::vector<std::int64_t> CountsOf(std::span<const double> doubles) {
  constexpr double kEnd = 1ull << (kDigitsPerDouble * kDigitBits);
  std::vector<std::int64_t> counts;
  counts.reserve(doubles.size());
  for (const double value : doubles) {
    const bool possible = value >= 0 && value < kEnd && value == std::floor(value);
    counts.push_back(possible ? static_cast<std::int64_t>(value) : -1);
  }
  return counts;
}

std::uint64_t RefusedPlaces(const SimTable& table, std::uint32_t num_shards, std::uint64_t places,
                            std::uint32_t bad) {
  if (table.dense()) return 1ull << bad;  // each block is a request of its own
  const auto shard_of = [&](std::uint32_t place) {
    return proto::ShardOfKey(table.keys[place], num_shards);
  };
  std::uint64_t refused = 0;
  for (std::uint32_t place = 0; place < table.places; ++place) {
    if (shard_of(place) == shard_of(bad)) refused |= places & (1ull << place);
  }
  return refused;
}

std::vector<std::int64_t> RaggedRows::Spread(const SimTable& table) const {
  std::vector<std::int64_t> spread(widths.size() * table.width);
  std::size_t from = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0) continue;
    if (widths[i] != table.width || values.size() - from < table.width) return {};
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), table.width,
                spread.begin() + static_cast<std::ptrdiff_t>(i * table.width));
    from += table.width;
  }
  return spread;
}

std::optional<std::uint32_t> PlaceOf(const SimTable& table, std::uint64_t key) {
  if (table.dense()) {
    return key < table.places ? std::optional(static_cast<std::uint32_t>(key)) : std::nullopt;
  }
  const auto found = std::find(table.keys.begin(), table.keys.end(), key);
  if (found == table.keys.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - table.keys.begin());
}

int TimesApplied(const SimTable& table, std::span<const std::int64_t> place, std::uint32_t rank,
                 std::size_t number) {
  const auto bits = static_cast<std::uint64_t>(place[ElementOf(table, rank, number)]);
  return static_cast<int>((bits >> ShiftOf(table, number)) & ((1u << kDigitBits) - 1));
}

bool NoneAppliedFrom(const SimTable& table, std::span<const std::int64_t> place, std::uint32_t rank,
                     std::size_t number) {
  for (; number < table.pushes_per_worker_max();
       number += table.digits_per_element() - number % table.digits_per_element()) {
    const auto bits = static_cast<std::uint64_t>(place[ElementOf(table, rank, number)]);
    if (bits >> ShiftOf(table, number) != 0) return false;
  }
  return true;
}

void AddPush(const SimTable& table, std::span<std::int64_t> place, std::uint32_t rank,
             std::size_t number) {
  place[ElementOf(table, rank, number)] += std::int64_t{1} << ShiftOf(table, number);
}

std::string DescribeDigit(const SimTable& table, std::uint32_t rank, std::size_t number) {
  return absl::StrCat("digit ", number % table.digits_per_element(), " of element ",
                      ElementOf(table, rank, number));
}

}  // namespace leeway::simulation
