#include "examples/fashion_mnist/recorder.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "examples/fashion_mnist/cross_entropy.h"
#include "examples/fashion_mnist/sharding.h"

namespace leeway::fashion_mnist {
namespace {

constexpr std::size_t kTestBatch = 500;

double Mean(double sum, std::size_t n) { return n == 0 ? 0 : sum / static_cast<double>(n); }

}  // namespace

void Recorder::AddStep(double loss, std::size_t samples) {
  ++step_;
  loss_ += loss;
  samples_ += samples;
  if (observer_->on_step) observer_->on_step(step_, steps_, Mean(loss_, samples_));
}

void Recorder::AddPoint(std::size_t epoch, const std::vector<Tensor>& values) {
  std::vector<std::uint32_t> all(test_->size());
  std::iota(all.begin(), all.end(), 0u);
  Batch batch;
  double loss = 0;
  std::size_t right = 0;
  for (std::size_t at = 0; at < all.size(); at += kTestBatch) {
    const std::size_t size = std::min(kTestBatch, all.size() - at);
    FillBatch(*test_, std::span(all).subspan(at, size), &batch);
    const std::span<const float> scores = model_->Scores(batch, values);
    loss += CrossEntropy(batch.labels, scores);
    for (std::size_t i = 0; i < size; ++i) {
      const float* row = scores.data() + i * kClasses;
      right += std::max_element(row, row + kClasses) - row == batch.labels[i];
    }
  }
  curve_.push_back({.epoch = epoch,
                    .step = step_,
                    .seconds = seconds(),
                    .train_loss = Mean(loss_, samples_),
                    .test_loss = Mean(loss, all.size()),
                    .test_accuracy = Mean(static_cast<double>(right), all.size())});
  loss_ = 0;
  samples_ = 0;
  if (observer_->on_point) observer_->on_point(curve_.back());
}

}  // namespace leeway::fashion_mnist
