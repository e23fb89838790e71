#include "benchmarks/lab/experiment/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/random.h"

namespace leeway::lab {
namespace {

constexpr std::size_t kOrdersKept = 8;
constexpr std::uint64_t kShuffles = 0x5a3f;

}  // namespace

Batches::Batches(std::size_t samples, std::vector<std::uint32_t> sizes, std::uint64_t seed)
    : samples_(samples), sizes_(std::move(sizes)), seed_(seed) {
  for (const std::uint32_t size : sizes_) {
    begins_.push_back(step_samples_);
    step_samples_ += size;
  }
  steps_per_epoch_ = samples_ / step_samples_;
}

std::vector<std::uint32_t> Batches::Take(std::uint64_t step, std::uint32_t worker) {
  const Order order = OrderOf(step / steps_per_epoch_);
  const std::size_t begin = step % steps_per_epoch_ * step_samples_ + begins_[worker];
  const auto first = order->begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + sizes_[worker]};
}

Batches::Order Batches::OrderOf(std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  Order& order = orders_[epoch];
  if (order == nullptr) {
    std::vector<std::uint32_t> shuffled(samples_);
    std::iota(shuffled.begin(), shuffled.end(), 0u);
    for (std::size_t i = samples_; i > 1; --i) {  // Fisher and Yates
      const std::uint64_t random = runtime::RandomAt(seed_, kShuffles + epoch, i);
      std::swap(shuffled[i - 1], shuffled[random % i]);
    }
    order = std::make_shared<const std::vector<std::uint32_t>>(std::move(shuffled));
  }
  const Order result = order;
  while (orders_.size() > kOrdersKept) orders_.erase(orders_.begin());
  return result;
}

std::vector<std::uint32_t> BalancedSizes(std::uint32_t batch, const std::vector<double>& speeds) {
  const double total = std::accumulate(speeds.begin(), speeds.end(), 0.0);
  if (!(total > 0 && std::isfinite(total))) {
    return std::vector<std::uint32_t>(speeds.size(), batch);
  }
  const std::size_t sum = batch * speeds.size();
  std::vector<std::uint32_t> sizes;
  std::vector<std::pair<double, std::size_t>> rests;  // what was cut off, and of whom
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const double share = static_cast<double>(sum) * speeds[i] / total;
    sizes.push_back(std::max(1u, static_cast<std::uint32_t>(share)));
    rests.emplace_back(-(share - std::floor(share)), i);
  }
  std::ranges::sort(rests);
  std::size_t given = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  for (std::size_t next = 0; given < sum; next = (next + 1) % rests.size(), ++given) {
    ++sizes[rests[next].second];
  }
  for (; given > sum; --given) --*std::ranges::max_element(sizes);
  return sizes;
}

}  // namespace leeway::lab
