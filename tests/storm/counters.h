// Tables of whole numbers in which every push of every worker leaves its trace, so that sums tell
// exactly which pushes a cluster has applied, and how often.
//
// An element has two numbers a worker: how many of its pushes are in, and the sum of their marks. A
// mark is a random number of (worker, step): so a push that is missing and another that is in twice
// do not make up for each other.
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

// Small enough that sums of millions fit.
std::int64_t MarkOf(std::uint32_t worker, std::uint64_t step);

// What elements of a table hold of a worker, and how many elements hold just that: one line if all
// is well.
struct Tally {
  std::string table;
  std::uint32_t worker = 0;
  std::int64_t pushes = 0;
  std::int64_t marks = 0;
  std::uint64_t elements = 0;
};

// A dense and a sparse table of one consistency.
class Counters {
 public:
  // The sparse one has keys in every shard.
  static constexpr std::uint64_t kKeys = 1024;
  static constexpr std::uint64_t kRows = 512;

  static absl::StatusOr<Counters> Create(const std::string& name, Consistency consistency,
                                         Worker* worker);

  // Counts this step of this worker. The tickets must be waited for before the next.
  std::vector<Ticket> Push(std::uint64_t step, const std::function<void()>& sparse_is_in);
  absl::StatusOr<std::vector<Tally>> Read();

 private:
  Counters(Table dense, Table sparse, Worker* worker);

  Table dense_, sparse_;
  Worker* worker_;
  std::uint64_t width_;
  std::vector<std::uint64_t> keys_;
  std::vector<std::int64_t> rows_;  // what is being pushed, enough for either
};

}  // namespace leeway::storm

#endif  // LEEWAY_TESTS_STORM_COUNTERS_H_
