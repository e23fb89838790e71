// Training is a worker that trains a model of every kind of table, the same way each time: the
// result depends on the clocks alone.
#ifndef LEEWAY_TESTS_CHECKPOINTS_TRAINING_H_
#define LEEWAY_TESTS_CHECKPOINTS_TRAINING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/worker.h"

namespace leeway::tests {

// All values of the model, as a pull returns them.
struct ModelValues {
  std::vector<float> dense;
  std::vector<float> sparse;
  std::vector<std::uint32_t> widths;
  std::vector<double> ragged;
  std::vector<std::int64_t> counters;
  friend bool operator==(const ModelValues&, const ModelValues&) = default;
};

class Training {
 public:
  static constexpr std::uint64_t kKeys = 200;
  static constexpr std::uint64_t kWidth = 6;

  // Creates the tables, or opens them if they exist.
  explicit Training(Worker* worker);
  // From the worker's clock until `end`.
  absl::Status RunUntil(std::uint64_t end);
  absl::Status Read(ModelValues* values);
  static std::vector<std::uint64_t> Keys();
  // The counters once every worker has done all clocks below `clock`.
  static std::vector<std::int64_t> CountersAt(std::uint64_t clock, std::uint32_t workers);

 private:
  absl::Status Step();

  Worker* const worker_;
  Table dense_, sparse_, ragged_, counters_;
  absl::Status status_;
};

}  // namespace leeway::tests

#endif  // LEEWAY_TESTS_CHECKPOINTS_TRAINING_H_
