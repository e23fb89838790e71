#include "examples/fashion_mnist/softmax_regression.h"

#include "examples/fashion_mnist/cross_entropy.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/matrix.h"

namespace leeway::fashion_mnist {
namespace {

enum : std::size_t { kWeight, kBias };

}  // namespace

SoftmaxRegression::SoftmaxRegression()
    : parameters_{{"fc.weight", {kPixels, kClasses}, Initializer::Zeros()},
                  {"fc.bias", {kClasses}, Initializer::Zeros()}} {}

std::span<const float> SoftmaxRegression::Scores(const Batch& batch,
                                                 const std::vector<Tensor>& values) {
  FillRows(values[kBias], batch.size(), &scores_);
  AddProduct(batch.inputs.data(), values[kWeight].data(), scores_.data(), batch.size(), kPixels,
             kClasses);
  return scores_;
}

double SoftmaxRegression::Gradients(const Batch& batch, const std::vector<Tensor>& values,
                                    double divisor, std::vector<Tensor>* gradients) {
  Scores(batch, values);
  const double loss = CrossEntropy(batch.labels, divisor, std::span<float>(scores_));
  Tensor& weight = (*gradients)[kWeight];
  weight.assign(weight.size(), 0.0f);
  AddTransposedProduct(batch.inputs.data(), scores_.data(), weight.data(), kPixels, batch.size(),
                       kClasses);
  SumRows(scores_, (*gradients)[kBias]);
  return loss;
}

}  // namespace leeway::fashion_mnist
