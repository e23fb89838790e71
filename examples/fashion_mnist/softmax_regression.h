// SoftmaxRegression is softmax regression: scores = x · weight + bias.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_SOFTMAX_REGRESSION_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_SOFTMAX_REGRESSION_H_

#include <vector>

#include "examples/fashion_mnist/model.h"

namespace leeway::fashion_mnist {

class SoftmaxRegression final : public Model {
 public:
  SoftmaxRegression();

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  double Gradients(const Batch& batch, const std::vector<Tensor>& values, double divisor,
                   std::vector<Tensor>* gradients) override;
  std::span<const float> Scores(const Batch& batch, const std::vector<Tensor>& values) override;

 private:
  std::vector<Parameter> parameters_;
  std::vector<float> scores_;  // [batch][kClasses], then their gradient
};

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_SOFTMAX_REGRESSION_H_
