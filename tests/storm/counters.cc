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
  const std::string prefix = absl::StrCat("counters.", name);
  std::vector<TableSpec> specs;
  if (consistency.late == Consistency::Late::kDrop ||
      consistency.weight == Consistency::Weight::kCutOff) {
    for (int i = 0; i < kSmall; ++i) {
      specs.push_back(TableSpec::Dense(absl::StrCat(prefix, ".", i), {1, width}, DType::kInt64));
    }
  } else {
    specs.push_back(
        TableSpec::Dense(absl::StrCat(prefix, ".dense"), {kRows, width}, DType::kInt64));
    specs.push_back(TableSpec::Sparse(absl::StrCat(prefix, ".sparse"), width, DType::kInt64));
  }
  std::vector<Table> tables;
  for (TableSpec& spec : specs) {
    LEEWAY_ASSIGN_OR_RETURN(Table table,
                            worker->CreateTable(Counting(std::move(spec), consistency)));
    tables.push_back(std::move(table));
  }
  return Counters(std::move(tables), worker);
}

Counters::Counters(std::vector<Table> tables, Worker* worker)
    : tables_(std::move(tables)),
      worker_(worker),
      width_(2 * std::uint64_t{worker->num_workers()}),
      keys_(kKeys),
      rows_(std::max(kKeys, kRows) * width_) {
  std::iota(keys_.begin(), keys_.end(), 0u);
}

std::uint64_t Counters::RowsOf(const Table& table) const {
  return table.spec().kind == TableKind::kSparse ? kKeys : table.spec().shape[0];
}

std::vector<Ticket> Counters::Push(std::uint64_t step, const std::function<void()>& is_in) {
  const std::int64_t mark = MarkOf(worker_->rank(), step);
  for (std::size_t at = 2 * worker_->rank(); at < rows_.size(); at += width_) {
    rows_[at] = 1;
    rows_[at + 1] = mark;
  }
  Options told;
  told.done = [is_in](const absl::Status& status) {
    if (status.ok()) is_in();
  };
  step_ = step;
  sent_.clear();
  for (const Table& table : tables_) {
    const auto rows = std::span<const std::int64_t>(rows_).first(RowsOf(table) * width_);
    const bool is_last = sent_.size() + 1 == tables_.size();
    const Options options = is_last ? told : Options();
    sent_.push_back(table.spec().kind == TableKind::kSparse
                        ? table.Push(std::span<const std::uint64_t>(keys_), rows, options)
                        : table.Push(rows, options));
  }
  return sent_;
}

absl::StatusOr<std::vector<Dropped>> Counters::TakeDropped() {
  std::vector<Dropped> dropped;
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    LEEWAY_ASSIGN_OR_RETURN(const PullInfo info, worker_->Info(sent_[i]));
    if (info.parts_dropped > 0) dropped.push_back({tables_[i].spec().name, step_});
  }
  sent_.clear();
  return dropped;
}

absl::StatusOr<std::vector<Tally>> Counters::Read() {
  std::vector<Tally> tallies;
  for (Table& table : tables_) {
    std::vector<std::int64_t> values(RowsOf(table) * width_);
    const std::span<std::int64_t> room(values);
    LEEWAY_RETURN_IF_ERROR(
        worker_->Wait(table.spec().kind == TableKind::kSparse
                          ? table.Pull(std::span<const std::uint64_t>(keys_), room)
                          : table.Pull(room)));
    AddTallies(table.spec().name, values, worker_->num_workers(), &tallies);
  }
  return tallies;
}

}  // namespace leeway::storm
