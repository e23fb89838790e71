// Model is the model that the checkpoint benchmark trains: dense and sparse tables with Adam's
// state.
#ifndef LEEWAY_BENCHMARKS_CHECKPOINT_MODEL_H_
#define LEEWAY_BENCHMARKS_CHECKPOINT_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "leeway/worker.h"

namespace leeway::bench {

constexpr std::uint64_t kTableElements = 1 << 20;  // 12 MiB with Adam's two values
constexpr std::uint64_t kWidth = 16;               // elements of a row: 208 bytes with all state
constexpr std::uint64_t kKeysAtOnce = 100'000;
constexpr std::uint64_t kKeysAStep = 1000;

// The size of a model.
struct ModelSize {
  std::uint64_t bytes = 0;

  std::uint64_t dense_tables() const { return bytes / 2 / (kTableElements * 12) + 1; }
  std::uint64_t rows() const { return bytes / 2 / (kWidth * 12 + 16) + 1; }
  // The number of clocks in which every value is pushed to once; so many at the beginning fill it.
  std::uint64_t round() const {
    return std::max(dense_tables(), (rows() + kKeysAtOnce - 1) / kKeysAtOnce);
  }
};

[[noreturn]] void Die(const absl::Status& why);

class Model {
 public:
  Model(Worker* worker, ModelSize size);

  // One clock: each worker pushes a dense table and some rows, ends its clock, and pulls a table
  // that is answered when the clock has closed for all. So a delay of one worker delays all. The
  // pushes depend on the clock and the rank alone. Returns the time that it took.
  absl::Duration Step();

  // Makes all workers see, at the same clock, that the last round has to begin.
  void AskForEnd() { end_asked_ = true; }
  bool end_seen() const { return end_seen_; }
  // From this clock on every value is pushed to once more.
  void BeginLastRound(std::uint64_t clock) { last_round_ = clock; }

  // The sum of all values at the worker's clock.
  std::uint64_t Sum();

 private:
  Table Open(TableSpec spec);
  void FillIn(std::uint64_t clock);

  Worker* const worker_;
  const ModelSize size_;
  std::vector<Table> dense_;
  Table sparse_;
  Table ends_;  // not part of the model: one row, changed when the end is asked for
  bool end_asked_ = false;
  bool end_seen_ = false;
  std::uint64_t last_round_ = ~std::uint64_t{0};
  std::vector<float> gradient_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_MODEL_H_
