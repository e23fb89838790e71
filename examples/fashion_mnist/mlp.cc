#include "examples/fashion_mnist/mlp.h"

#include <algorithm>

#include "examples/fashion_mnist/cross_entropy.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/matrix.h"

namespace leeway::fashion_mnist {
namespace {

enum : std::size_t { kWeight1, kBias1, kWeight2, kBias2 };

}  // namespace

Mlp::Mlp(std::uint64_t seed)
    : parameters_{{"fc1.weight", {kPixels, kHidden}, ForReLU(kPixels, seed)},
                  {"fc1.bias", {kHidden}, Initializer::Zeros()},
                  {"fc2.weight", {kHidden, kClasses}, ForReLU(kHidden, seed)},
                  {"fc2.bias", {kClasses}, Initializer::Zeros()}} {}

std::span<const float> Mlp::Scores(const Batch& batch, const std::vector<Tensor>& values) {
  const std::size_t n = batch.size();
  FillRows(values[kBias1], n, &hidden_);
  AddProduct(batch.inputs.data(), values[kWeight1].data(), hidden_.data(), n, kPixels, kHidden);
  for (float& h : hidden_) h = std::max(h, 0.0f);
  FillRows(values[kBias2], n, &scores_);
  AddProduct(hidden_.data(), values[kWeight2].data(), scores_.data(), n, kHidden, kClasses);
  return scores_;
}

double Mlp::Gradients(const Batch& batch, const std::vector<Tensor>& values, double divisor,
                      std::vector<Tensor>* gradients) {
  const std::size_t n = batch.size();
  std::vector<Tensor>& g = *gradients;
  Scores(batch, values);
  const double loss = CrossEntropy(batch.labels, divisor, std::span<float>(scores_));

  g[kWeight2].assign(kHidden * kClasses, 0.0f);
  AddTransposedProduct(hidden_.data(), scores_.data(), g[kWeight2].data(), kHidden, n, kClasses);
  SumRows(scores_, g[kBias2]);

  // Back through the second layer, and through the ReLU where its input was positive.
  const std::vector<float> back = Transposed(values[kWeight2], kHidden, kClasses);
  hidden_gradient_.assign(n * kHidden, 0.0f);
  AddProduct(scores_.data(), back.data(), hidden_gradient_.data(), n, kClasses, kHidden);
  for (std::size_t i = 0; i < hidden_.size(); ++i) {
    if (hidden_[i] <= 0) hidden_gradient_[i] = 0;
  }

  g[kWeight1].assign(kPixels * kHidden, 0.0f);
  AddTransposedProduct(batch.inputs.data(), hidden_gradient_.data(), g[kWeight1].data(), kPixels, n,
                       kHidden);
  SumRows(hidden_gradient_, g[kBias1]);
  return loss;
}

}  // namespace leeway::fashion_mnist
