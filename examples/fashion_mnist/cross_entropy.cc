#include "examples/fashion_mnist/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "examples/fashion_mnist/idx_data.h"

namespace leeway::fashion_mnist {
namespace {

// log(Σ exp(score)), shifted by the largest so that no exponential overflows.
double LogSumExp(const float* scores) {
  const double largest = *std::max_element(scores, scores + kClasses);
  double sum = 0;
  for (std::size_t j = 0; j < kClasses; ++j) sum += std::exp(scores[j] - largest);
  return largest + std::log(sum);
}

}  // namespace

double CrossEntropy(std::span<const std::uint8_t> labels, double divisor, std::span<float> scores) {
  double total = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    float* row = scores.data() + i * kClasses;
    const double log_sum = LogSumExp(row);
    total += log_sum - row[labels[i]];
    for (std::size_t j = 0; j < kClasses; ++j) {
      const double target = j == labels[i] ? 1 : 0;
      row[j] = static_cast<float>((std::exp(row[j] - log_sum) - target) / divisor);
    }
  }
  return total;
}

double CrossEntropy(std::span<const std::uint8_t> labels, std::span<const float> scores) {
  double total = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float* row = scores.data() + i * kClasses;
    total += LogSumExp(row) - row[labels[i]];
  }
  return total;
}

void FillRows(std::span<const float> bias, std::size_t n, std::vector<float>* rows) {
  rows->resize(n * bias.size());
  for (std::size_t i = 0; i < n; ++i) {
    std::copy(bias.begin(), bias.end(), rows->data() + i * bias.size());
  }
}

void SumRows(std::span<const float> rows, std::span<float> sum) {
  std::fill(sum.begin(), sum.end(), 0.0f);
  for (std::size_t at = 0; at < rows.size(); at += sum.size()) {
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += rows[at + j];
  }
}

}  // namespace leeway::fashion_mnist
