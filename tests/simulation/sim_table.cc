#include "tests/simulation/sim_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
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
template <class T>
void Append(T value, std::vector<std::byte>* to) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to->insert(to->end(), bytes.begin(), bytes.end());
}

template <class T>
double FloatFrom(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return static_cast<double>(static_cast<float>(value));
}

double FloatAt(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::kFloat32:
      return FloatFrom<float>(at);
    case DType::kFloat16:
      return FloatFrom<Float16>(at);
    case DType::kBFloat16:
      return FloatFrom<BFloat16>(at);
    default:
      break;
  }
  double value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// The same count with digits that say how often each push was applied.
std::int64_t TimesOf(const SimTable& table, std::int64_t count) {
  if (!table.has_uneven_weights()) return count;
  constexpr std::int64_t kTimes[1 << kDigitBits] = {0, 1, 2, 1, 2, 3, 2, 3};
  std::int64_t times = 0;
  for (std::size_t digit = 0; digit < table.digits_per_element(); ++digit) {
    const int shift = static_cast<int>(digit) * kDigitBits;
    times |= kTimes[(count >> shift) & ((1 << kDigitBits) - 1)] << shift;
  }
  return times;
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

namespace {

void SetDType(SimTable* table, DType dtype) {
  table->spec.dtype = dtype;
  if (!table->dense()) return;
  table->stride = kBlockBytes / SizeOf(dtype);
  table->spec.shape = {(table->places - 1) * table->stride + table->width};
}

// A type that means and weights of pushes are exact in.
DType AnyFloat(runtime::Random* random) {
  const DType floats[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16};
  return floats[random->Below(4)];
}

// One whose pushes take effect when they come.
Consistency OneByOne(std::uint32_t num_workers, runtime::Random* random) {
  switch (random->Below(4)) {
    case 0:
      return Consistency::Asp();
    case 1:
      return Consistency::Psp(random->Below(3), 1 + random->Below(num_workers));
    case 2:
      return Consistency::Dssp(static_cast<std::uint32_t>(random->Below(2)), 1 + random->Below(4));
    default:
      return Consistency::Ssp(1 + random->Below(3));
  }
}

// What else a consistency can be, where the values still tell what has been applied.
void Vary(SimTable* table, bool workers_return, runtime::Random* random) {
  Consistency& consistency = table->spec.consistency;
  const auto few = static_cast<std::uint32_t>(2 << random->Below(3));
  switch (random->Below(6)) {
    case 0:
      consistency =
          random->Below(2) == 0 ? Consistency::FedBuff(few) : OneByOne(table->num_workers, random);
      consistency.weight = Consistency::Weight::kTable;
      consistency.weights = {0.25, 0.75};
      table->push_scale = 4;
      return SetDType(table, AnyFloat(random));
    case 1:
      consistency = Consistency::FedBuff(few);
      table->spec.aggregate = Aggregate::kMean;
      table->push_scale = table->mean_of = few;
      return SetDType(table, AnyFloat(random));
    case 2:
      // So little that nothing changes.
      if (!table->dense()) return SetDType(table, AnyFloat(random));
      consistency = OneByOne(table->num_workers, random);
      consistency.compensation = 1e-37;
      return SetDType(table, DType::kFloat32);
    case 3:
      // For most of the run there is nothing but what is collected.
      consistency = Consistency::FedBuff(16 << random->Below(4));
      return;
    case 4:
      if (consistency.rule == Consistency::Rule::kBackup && workers_return) {
        consistency.when_short = Consistency::Short::kWait;
      }
      return;
    default:
      return SetDType(table, AnyFloat(random));
  }
}

}  // namespace

SimTable PolicyTable(std::uint32_t index, std::uint32_t num_workers, bool workers_return,
                     runtime::Random* random) {
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
  if (random->Below(2) == 0) Vary(&table, workers_return, random);
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

std::vector<std::byte> ToValues(const SimTable& table, std::span<const std::int64_t> counts) {
  std::vector<std::byte> values;
  for (const std::int64_t count : counts) {
    const double value = static_cast<double>(count) * table.push_scale;
    const auto single = static_cast<float>(value);
    switch (table.spec.dtype) {
      case DType::kFloat32:
        Append(single, &values);
        break;
      case DType::kFloat16:
        Append(Float16(single), &values);
        break;
      case DType::kBFloat16:
        Append(BFloat16(single), &values);
        break;
      default:
        Append(value, &values);
    }
  }
  return values;
}

std::vector<std::int64_t> ToCounts(const SimTable& table, DType dtype,
                                   std::span<const std::byte> values, std::uint32_t scale) {
  const double end = std::ldexp(1, static_cast<int>(table.digits_per_element()) * kDigitBits);
  std::vector<std::int64_t> counts;
  for (std::size_t at = 0; at < values.size(); at += SizeOf(dtype)) {
    const double value = FloatAt(dtype, values.data() + at) / scale;
    const bool possible = value >= 0 && value < end && value == std::floor(value);
    counts.push_back(possible ? TimesOf(table, static_cast<std::int64_t>(value)) : -1);
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
