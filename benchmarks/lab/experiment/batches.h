// Batches decides which samples a worker takes at each step, without a word between workers.
//
// Each epoch goes through all samples once, in an order that follows from the seed and the epoch.
// Step t of an epoch takes the next Σ sizes samples, and worker w the part of sizes[w] behind those
// of the workers before it; the samples left over at an epoch's end are left out. A worker that
// runs ahead of the others takes what the schedule gives it, epoch after epoch.
#ifndef LEEWAY_BENCHMARKS_LAB_EXPERIMENT_BATCHES_H_
#define LEEWAY_BENCHMARKS_LAB_EXPERIMENT_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace leeway::lab {

class Batches {
 public:
  // sizes[w] is worker w's; together they are at most `samples`.
  Batches(std::size_t samples, std::vector<std::uint32_t> sizes, std::uint64_t seed);

  std::size_t steps_per_epoch() const { return steps_per_epoch_; }
  // Any thread.
  std::vector<std::uint32_t> Take(std::uint64_t step, std::uint32_t worker);

 private:
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;
  Order OrderOf(std::uint64_t epoch);

  const std::size_t samples_;
  const std::vector<std::uint32_t> sizes_;
  const std::uint64_t seed_;
  std::vector<std::size_t> begins_;  // by worker, within a step
  std::size_t step_samples_ = 0;
  std::size_t steps_per_epoch_ = 0;
  std::mutex mutex_;
  std::map<std::uint64_t, Order> orders_;  // of the newest epochs
};

// Sizes for workers of those speeds (steps a second of equal batches): in proportion, each at least
// 1, with the sum of `batch` for each worker (largest remainders). Equal ones where steps take no
// time.
std::vector<std::uint32_t> BalancedSizes(std::uint32_t batch, const std::vector<double>& speeds);

}  // namespace leeway::lab

#endif  // LEEWAY_BENCHMARKS_LAB_EXPERIMENT_BATCHES_H_
