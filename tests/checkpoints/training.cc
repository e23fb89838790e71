#include "tests/checkpoints/training.h"

#include "runtime/base/status_macros.h"

namespace leeway::tests {
namespace {

constexpr std::uint64_t kElements = 5000;

TableSpec With(TableSpec spec, const char* updater, Consistency consistency) {
  spec.updater.name = updater;
  spec.consistency = consistency;
  return spec;
}

// A number that depends on all arguments.
float Gradient(std::uint64_t clock, std::uint64_t rank, std::uint64_t place) {
  const std::uint64_t mixed = (clock * 7919 + rank * 104729 + place * 1299709) % 1000;
  return static_cast<float>(mixed) / 500.0f - 1.0f;
}

std::uint32_t WidthOf(std::uint64_t key) { return static_cast<std::uint32_t>(key % 5); }

// Each worker and clock has some of the keys.
std::vector<std::uint64_t> SomeKeys(std::uint64_t clock, std::uint64_t rank) {
  std::vector<std::uint64_t> some;
  for (const std::uint64_t key : Training::Keys()) {
    if ((key + clock + rank) % 3 == 0) some.push_back(key);
  }
  return some;
}

}  // namespace

std::vector<std::uint64_t> Training::Keys() {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(i * 12345678901 + 1);
  return keys;
}

Training::Training(Worker* worker) : worker_(worker) {
  const auto create = [this](const TableSpec& spec, Table* table) {
    auto created = worker_->CreateTable(spec);
    status_.Update(created.status());
    if (created.ok()) *table = *std::move(created);
  };
  TableSpec dense =
      With(TableSpec::Dense("dense", {50, kElements / 50}), "adam", Consistency::Bsp());
  dense.initializer = Initializer::Uniform(-1, 1, 3);
  create(dense, &dense_);
  create(With(TableSpec::Sparse("sparse", kWidth), "adagrad", Consistency::Bsp()), &sparse_);
  create(With(TableSpec::Ragged("ragged", DType::kFloat64), "momentum", Consistency::Bsp()),
         &ragged_);
  create(With(TableSpec::Dense("counters", {kElements}, DType::kInt64), "add", Consistency::Ssp(2)),
         &counters_);
}

absl::Status Training::Step() {
  const std::uint64_t clock = worker_->clock(), rank = worker_->rank();
  std::vector<float> dense, sparse;
  for (std::uint64_t i = 0; i < kElements; ++i) dense.push_back(Gradient(clock, rank, i));
  const std::vector<std::uint64_t> keys = SomeKeys(clock, rank);
  std::vector<std::uint32_t> widths;
  std::vector<double> ragged;
  for (const std::uint64_t key : keys) {
    for (std::uint64_t i = 0; i < kWidth; ++i) sparse.push_back(Gradient(clock, rank, key + i));
    widths.push_back(WidthOf(key));
    for (std::uint32_t i = 0; i < widths.back(); ++i) {
      ragged.push_back(static_cast<double>(Gradient(clock, rank, key * 3 + i)));
    }
  }
  const std::vector<std::int64_t> counts(kElements, static_cast<std::int64_t>(clock + rank + 1));
  std::vector<float> pulled(kElements);
  const std::vector<Ticket> tickets = {
      dense_.Push(std::span<const float>(dense)),
      sparse_.Push(std::span<const std::uint64_t>(keys), std::span<const float>(sparse)),
      ragged_.PushRagged(keys, widths, std::span<const double>(ragged)),
      counters_.Push(std::span<const std::int64_t>(counts)),
      dense_.Pull(std::span<float>(pulled))};  // so that no worker runs ahead
  LEEWAY_RETURN_IF_ERROR(worker_->Wait(tickets));
  return worker_->Clock();
}

absl::Status Training::RunUntil(std::uint64_t end) {
  while (status_.ok() && worker_->clock() < end) status_ = Step();
  return status_;
}

absl::Status Training::Read(ModelValues* values) {
  values->dense.resize(kElements);
  values->sparse.resize(kKeys * kWidth);
  values->counters.resize(kElements);
  const std::vector<std::uint64_t> keys = Keys();
  // Once an iteration has ended for all, the counters include it as well; a pull of the counters
  // would not wait for that.
  LEEWAY_RETURN_IF_ERROR(worker_->Wait(dense_.Pull(std::span<float>(values->dense))));
  const std::vector<Ticket> tickets = {
      sparse_.Pull(std::span<const std::uint64_t>(keys), std::span<float>(values->sparse)),
      ragged_.PullRagged(keys, &values->widths, &values->ragged),
      counters_.Pull(std::span<std::int64_t>(values->counters))};
  return worker_->Wait(tickets);
}

std::vector<std::int64_t> Training::CountersAt(std::uint64_t clock, std::uint32_t workers) {
  std::int64_t sum = 0;
  for (std::uint64_t c = 0; c < clock; ++c) {
    for (std::uint32_t rank = 0; rank < workers; ++rank) {
      sum += static_cast<std::int64_t>(c + rank + 1);
    }
  }
  return std::vector<std::int64_t>(kElements, sum);
}

}  // namespace leeway::tests
