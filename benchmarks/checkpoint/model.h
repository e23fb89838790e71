// The model that the checkpoint's benchmark trains: dense and sparse tables with Adam's state.
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
constexpr std::uint64_t kWidth = 16;               // of a row: 208 bytes with state, key and steps
constexpr std::uint64_t kKeysAtOnce = 100'000;
constexpr std::uint64_t kKeysAStep = 1000;

// How large it is.
struct ModelSize {
  std::uint64_t bytes = 0;

  std::uint64_t dense_tables() const { return bytes / 2 / (kTableElements * 12) + 1; }
  std::uint64_t rows() const { return bytes / 2 / (kWidth * 12 + 16) + 1; }
  // The clocks in which every value is pushed to once: so many at the beginning fill it.
  std::uint64_t round() const {
    return std::max(dense_tables(), (rows() + kKeysAtOnce - 1) / kKeysAtOnce);
  }
};

[[noreturn]] void Die(const absl::Status& why);

class Model {
 public:
  Model(Worker* worker, ModelSize size);

  // One clock: each worker pushes a dense table and some rows, ends its clock, and pulls what is
  // answered when the clock has closed for all. So whatever holds up one of the workers holds up
  // all. What is pushed follows from the clock and the rank alone. Returns how long that took.
  absl::Duration Step();

  // Has all workers see, at the same clock, that it is time for the last round.
  void AskForEnd() { end_asked_ = true; }
  bool end_seen() const { return end_seen_; }
  // From this clock on every value is pushed to once more.
  void BeginLastRound(std::uint64_t clock) { last_round_ = clock; }

  // Of all values, as they are at the worker's clock.
  std::uint64_t Sum();

 private:
  Table Open(TableSpec spec);
  void FillIn(std::uint64_t clock);

  Worker* const worker_;
  const ModelSize size_;
  std::vector<Table> dense_;
  Table sparse_;
  Table ends_;  // no part of the model: one row, changed when the end is asked for
  bool end_asked_ = false;
  bool end_seen_ = false;
  std::uint64_t last_round_ = ~std::uint64_t{0};
  std::vector<float> gradient_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace leeway::bench

#endif  // LEEWAY_BENCHMARKS_CHECKPOINT_MODEL_H_
