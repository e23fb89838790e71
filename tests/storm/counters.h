// Counters are tables of whole numbers in which every push of every worker leaves its trace, so
// that sums show exactly which pushes a cluster has applied, and how often.
//
// An element has two numbers for each worker: the number of its pushes, and the sum of their marks.
// A mark is a random number of (worker, step): so a missing push and another that counts twice do
// not cancel each other.
//
// Where a policy drops pushes each table has one request a push: it is dropped as a whole or not at
// all, and its worker knows which.
#ifndef LEEWAY_TESTS_STORM_COUNTERS_H_
#define LEEWAY_TESTS_STORM_COUNTERS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/worker.h"

namespace leeway::storm {

// Small enough that sums of millions of marks fit.
std::int64_t MarkOf(std::uint32_t worker, std::uint64_t step);

// A worker's numbers in elements of a table, and the number of elements that hold exactly these:
// one line if all is well.
struct Tally {
  std::string table;
  std::uint32_t worker = 0;
  std::int64_t pushes = 0;
  std::int64_t marks = 0;
  std::uint64_t elements = 0;
};

// A worker was told that its push was dropped.
struct Dropped {
  std::string table;
  std::uint64_t step = 0;
};

// Tables of one consistency: a dense and a sparse one, or kSmall dense ones of one block.
class Counters {
 public:
  // Enough keys that every shard has some.
  static constexpr std::uint64_t kKeys = 1024;
  static constexpr std::uint64_t kRows = 512;
  static constexpr int kSmall = 8;

  static absl::StatusOr<Counters> Create(const std::string& name, Consistency consistency,
                                         Worker* worker);

  // Pushes this step of this worker. Wait for the tickets before the next push. `is_in`: the push
  // to the table that has something on every shard is acknowledged.
  std::vector<Ticket> Push(std::uint64_t step, const std::function<void()>& is_in);
  // Of the last push; its tickets are done.
  absl::StatusOr<std::vector<Dropped>> TakeDropped();
  absl::StatusOr<std::vector<Tally>> Read();

 private:
  Counters(std::vector<Table> tables, Worker* worker);
  std::uint64_t RowsOf(const Table& table) const;

  std::vector<Table> tables_;
  Worker* worker_;
  std::uint64_t width_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::int64_t> rows_;  // the pushed values, enough for any table
  std::vector<Ticket> sent_;        // by table
  std::uint64_t step_ = 0;
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_COUNTERS_H_
