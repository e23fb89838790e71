#include "tests/storm/counters.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::storm {
namespace {

constexpr int kMarkBits = 36;

TableSpec Counting(TableSpec spec, Consistency consistency) {
  spec.updater.name = "add";
  spec.consistency = consistency;
  return spec;
}

// values: rows of `workers` pairs.
void AddTallies(const std::string& table, std::span<const std::int64_t> values,
                std::uint32_t workers, std::vector<Tally>* tallies) {
  std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>, std::uint64_t> found;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    ++found[{static_cast<std::uint32_t>(i / 2 % workers), values[i], values[i + 1]}];
  }
  for (const auto& [what, elements] : found) {
    tallies->push_back({table, std::get<0>(what), std::get<1>(what), std::get<2>(what), elements});
  }
}

}  // namespace

// The last steps of SplitMix64.
std::int64_t MarkOf(std::uint32_t worker, std::uint64_t step) {
  std::uint64_t x = (std::uint64_t{worker} << 40) + step + 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return static_cast<std::int64_t>((x ^ (x >> 31)) >> (64 - kMarkBits));
}

absl::StatusOr<Counters> Counters::Create(const std::string& name, Consistency consistency,
                                          Worker* worker) {
  const std::uint64_t width = 2 * std::uint64_t{worker->num_workers()};
  LEEWAY_ASSIGN_OR_RETURN(
      Table dense,
      worker->CreateTable(Counting(TableSpec::Dense(absl::StrCat("counters.", name, ".dense"),
                                                    {kRows, width}, DType::kInt64),
                                   consistency)));
  LEEWAY_ASSIGN_OR_RETURN(
      Table sparse,
      worker->CreateTable(Counting(
          TableSpec::Sparse(absl::StrCat("counters.", name, ".sparse"), width, DType::kInt64),
          consistency)));
  return Counters(std::move(dense), std::move(sparse), worker);
}

Counters::Counters(Table dense, Table sparse, Worker* worker)
    : dense_(std::move(dense)),
      sparse_(std::move(sparse)),
      worker_(worker),
      width_(2 * std::uint64_t{worker->num_workers()}),
      keys_(kKeys),
      rows_(std::max(kKeys, kRows) * width_) {
  std::iota(keys_.begin(), keys_.end(), 0u);
}

std::vector<Ticket> Counters::Push(std::uint64_t step, const std::function<void()>& sparse_is_in) {
  const std::int64_t mark = MarkOf(worker_->rank(), step);
  for (std::size_t at = 2 * worker_->rank(); at < rows_.size(); at += width_) {
    rows_[at] = 1;
    rows_[at + 1] = mark;
  }
  const std::span<const std::int64_t> rows(rows_);
  Options told;
  told.done = [sparse_is_in](const absl::Status& status) {
    if (status.ok()) sparse_is_in();
  };
  return {dense_.Push(rows.first(kRows * width_)),
          sparse_.Push(std::span<const std::uint64_t>(keys_), rows.first(kKeys * width_), told)};
}

absl::StatusOr<std::vector<Tally>> Counters::Read() {
  std::vector<std::int64_t> dense(kRows * width_), sparse(kKeys * width_);
  const std::vector<Ticket> tickets = {
      dense_.Pull(std::span<std::int64_t>(dense)),
      sparse_.Pull(std::span<const std::uint64_t>(keys_), std::span<std::int64_t>(sparse))};
  LEEWAY_RETURN_IF_ERROR(worker_->Wait(tickets));
  std::vector<Tally> tallies;
  AddTallies(dense_.spec().name, dense, worker_->num_workers(), &tallies);
  AddTallies(sparse_.spec().name, sparse, worker_->num_workers(), &tallies);
  return tallies;
}

}  // namespace leeway::storm
