// A multi-layer perceptron with one hidden layer:
//   hidden = max(0, x · fc1.weight + fc1.bias), scores = hidden · fc2.weight + fc2.bias.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_MLP_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_MLP_H_

#include <cstdint>
#include <vector>

#include "examples/fashion_mnist/model.h"

namespace leeway::fashion_mnist {

class Mlp final : public Model {
 public:
  static constexpr std::size_t kHidden = 128;

  explicit Mlp(std::uint64_t seed);

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  double Gradients(const Batch& batch, const std::vector<Tensor>& values, double divisor,
                   std::vector<Tensor>* gradients) override;
  std::span<const float> Scores(const Batch& batch, const std::vector<Tensor>& values) override;

 private:
  std::vector<Parameter> parameters_;
  std::vector<float> hidden_;           // [batch][kHidden], after the ReLU
  std::vector<float> scores_;           // [batch][kClasses], then their gradient
  std::vector<float> hidden_gradient_;  // [batch][kHidden]
};

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_MLP_H_
