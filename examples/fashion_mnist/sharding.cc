#include "examples/fashion_mnist/sharding.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>

namespace leeway::fashion_mnist {
namespace {

// Mean and deviation over the training images' pixels, from 0 to 1.
constexpr float kPixelMean = 0.2860f;
constexpr float kPixelDeviation = 0.3530f;

// Fisher–Yates. Its generator is the same everywhere; that of the standard library's shuffle is
// not.
void Shuffle(std::uint64_t seed, std::vector<std::uint32_t>* order) {
  std::mt19937_64 random(seed);
  for (std::size_t i = order->size(); i > 1; --i) {
    std::swap((*order)[i - 1], (*order)[random() % i]);
  }
}

std::array<float, 256> ScaledPixels() {
  std::array<float, 256> scaled;
  for (std::size_t p = 0; p < scaled.size(); ++p) {
    scaled[p] = (static_cast<float>(p) / 255 - kPixelMean) / kPixelDeviation;
  }
  return scaled;
}

}  // namespace

Sharding::Sharding(std::size_t samples, std::size_t batch, std::uint32_t workers,
                   std::uint64_t seed)
    : samples_(samples),
      batch_(batch),
      workers_(workers),
      seed_(seed),
      steps_per_epoch_((samples + batch * workers - 1) / (batch * workers)),
      shuffled_epoch_(std::numeric_limits<std::size_t>::max()) {}

std::size_t Sharding::StepSize(std::size_t step) const {
  const std::size_t whole = batch_ * workers_;
  return std::min(whole, samples_ - step % steps_per_epoch_ * whole);
}

std::span<const std::uint32_t> Sharding::Take(std::size_t step, std::uint32_t rank) {
  if (const std::size_t epoch = EpochOf(step); epoch != shuffled_epoch_) {
    order_.resize(samples_);
    std::iota(order_.begin(), order_.end(), 0u);
    Shuffle(seed_ + epoch * 0x9e3779b97f4a7c15u, &order_);
    shuffled_epoch_ = epoch;
  }
  const std::size_t first = step % steps_per_epoch_ * batch_ * workers_;
  const std::size_t size = StepSize(step);
  const std::size_t begin = first + size * rank / workers_;
  const std::size_t end = first + size * (rank + 1) / workers_;
  return std::span(order_).subspan(begin, end - begin);
}

void FillBatch(const Images& images, std::span<const std::uint32_t> samples, Batch* batch) {
  static const std::array<float, 256> scaled = ScaledPixels();
  batch->inputs.resize(samples.size() * kPixels);
  batch->labels.resize(samples.size());
  float* to = batch->inputs.data();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (const std::uint8_t pixel : images.image(samples[i])) *to++ = scaled[pixel];
    batch->labels[i] = images.labels[samples[i]];
  }
}

}  // namespace leeway::fashion_mnist
