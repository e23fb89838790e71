// Sharding decides which samples a worker takes at each step.
//
// Every epoch goes through all samples once, in an order that depends on the seed and the epoch
// alone. Step t of an epoch takes the next W·b samples (the last step: the rest), and worker w the
// w-th part of them. So W workers with batches of b together see the samples that one worker with a
// batch of W·b sees.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_SHARDING_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_SHARDING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/model.h"

namespace leeway::fashion_mnist {

class Sharding {
 public:
  Sharding(std::size_t samples, std::size_t batch, std::uint32_t workers, std::uint64_t seed);

  std::size_t steps_per_epoch() const { return steps_per_epoch_; }

  // Steps count from 0 over all epochs.
  std::size_t EpochOf(std::size_t step) const { return step / steps_per_epoch_; }
  // The number of samples that all workers take together at this step.
  std::size_t StepSize(std::size_t step) const;
  // The samples of worker `rank`: valid until the next call.
  std::span<const std::uint32_t> Take(std::size_t step, std::uint32_t rank);

 private:
  std::size_t samples_;
  std::size_t batch_;
  std::uint32_t workers_;
  std::uint64_t seed_;
  std::size_t steps_per_epoch_;
  std::size_t shuffled_epoch_;
  std::vector<std::uint32_t> order_;  // of shuffled_epoch_
};

// The samples' pixels, scaled to about mean 0 and variance 1, and their labels.
void FillBatch(const Images& images, std::span<const std::uint32_t> samples, Batch* batch);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_SHARDING_H_
