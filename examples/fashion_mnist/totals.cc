#include "examples/fashion_mnist/totals.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace leeway::fashion_mnist {
namespace {

// Columns of the table of totals, which has a row for each worker.
enum Field : std::size_t {
  kWaitedMicroseconds,
  kBytesPushed,
  kBytesPulled,
  kResends,
  kMaxStaleness,
  kViolations,
  kFields
};

TableSpec Adding(TableSpec spec) {
  spec.updater.name = "add";
  spec.consistency = Consistency::Asp();
  return spec;
}

std::int64_t Signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

// This worker's row, in a table that is zero elsewhere.
std::vector<std::int64_t> OwnTotals(const WorkerStats& before, const WorkerStats& after,
                                    const Worker& worker) {
  std::vector<std::int64_t> totals(worker.num_workers() * kFields);
  std::int64_t* row = totals.data() + worker.rank() * kFields;
  row[kWaitedMicroseconds] = absl::ToInt64Microseconds(after.waited - before.waited);
  row[kBytesPushed] = Signed(after.bytes_pushed - before.bytes_pushed);
  row[kBytesPulled] = Signed(after.bytes_pulled - before.bytes_pulled);
  row[kResends] = Signed(after.resends - before.resends);
  row[kMaxStaleness] = Signed(after.max_staleness);
  row[kViolations] = Signed(after.staleness_violations);
  return totals;
}

void Report(const std::vector<std::int64_t>& totals, Outcome* outcome) {
  for (std::size_t at = 0; at < totals.size(); at += kFields) {
    const std::int64_t* row = totals.data() + at;
    outcome->idle_s.push_back(static_cast<double>(row[kWaitedMicroseconds]) * 1e-6);
    outcome->bytes_pushed += static_cast<std::uint64_t>(row[kBytesPushed]);
    outcome->bytes_pulled += static_cast<std::uint64_t>(row[kBytesPulled]);
    outcome->resends += static_cast<std::uint64_t>(row[kResends]);
    outcome->staleness_violations += static_cast<std::uint64_t>(row[kViolations]);
    outcome->max_staleness =
        std::max(outcome->max_staleness, static_cast<std::uint64_t>(row[kMaxStaleness]));
  }
}

}  // namespace

absl::Status GatherTotals(const WorkerStats& before, const WorkerStats& after, Worker* worker,
                          Outcome* outcome) {
  absl::StatusOr<Table> totals = worker->CreateTable(
      Adding(TableSpec::Dense("run.totals", {worker->num_workers(), kFields}, DType::kInt64)));
  if (!totals.ok()) return totals.status();
  // The histogram is a sparse table: a key is a staleness, its row the number of pulls with it.
  absl::StatusOr<Table> histogram =
      worker->CreateTable(Adding(TableSpec::Sparse("run.staleness", 1, DType::kInt64)));
  if (!histogram.ok()) return histogram.status();

  std::vector<std::int64_t> own = OwnTotals(before, after, *worker);
  std::vector<std::uint64_t> keys;
  std::vector<std::int64_t> pulls;
  for (const auto& [staleness, count] : after.staleness_histogram) {
    keys.push_back(staleness);
    pulls.push_back(Signed(count));
  }
  const Ticket pushes[] = {
      totals->Push(std::span<const std::int64_t>(own)),
      histogram->Push(std::span<const std::uint64_t>(keys), std::span<const std::int64_t>(pulls))};
  if (absl::Status status = worker->Wait(pushes); !status.ok()) return status;
  if (absl::Status status = worker->Barrier(Group::kWorkers, "totals"); !status.ok()) return status;
  if (worker->rank() != 0) return absl::OkStatus();

  absl::Status status = worker->Wait(totals->Pull(std::span<std::int64_t>(own)));
  if (!status.ok()) return status;
  Report(own, outcome);
  keys.resize(outcome->max_staleness + 1);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  pulls.resize(keys.size());
  status = worker->Wait(
      histogram->Pull(std::span<const std::uint64_t>(keys), std::span<std::int64_t>(pulls)));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (pulls[i] > 0) outcome->staleness_histogram[keys[i]] = static_cast<std::uint64_t>(pulls[i]);
  }
  return status;
}

}  // namespace leeway::fashion_mnist
