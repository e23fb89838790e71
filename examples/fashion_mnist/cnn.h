// A small convolutional network: two layers of convolutions with stride 2 and ReLU, and a linear
// one.
//   28×28 → 5×5, 8 channels → 12×12 → 3×3, 16 channels → 5×5 → 10 scores
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_CNN_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_CNN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "examples/fashion_mnist/model.h"

namespace leeway::fashion_mnist {

// One layer of convolutions, on images [side][side][channels], as a product of matrices: the rows
// are the patches that the kernel sees.
class Convolution {
 public:
  Convolution(std::size_t side, std::size_t channels, std::size_t kernel, std::size_t out_channels);

  std::size_t out_side() const { return out_side_; }
  std::size_t inputs() const { return kernel_ * kernel_ * channels_; }  // of one output
  std::size_t out_channels() const { return out_channels_; }

  // The outputs after the ReLU: [images][out_side][out_side][out_channels].
  const std::vector<float>& Forward(const float* images, std::size_t count, const Tensor& weight,
                                    const Tensor& bias);
  // From the gradient by the last Forward's outputs: those by weight, bias and, unless null,
  // images.
  void Backward(std::vector<float>* out_gradient, const Tensor& weight, Tensor* weight_gradient,
                Tensor* bias_gradient, std::vector<float>* image_gradient);

 private:
  template <class Visit>
  void ForEachPatchRow(std::size_t count, Visit visit) const;

  const std::size_t side_, channels_, kernel_, out_side_, out_channels_;
  std::vector<float> patches_;  // [images · out_side · out_side][inputs()]
  std::vector<float> outputs_;
  std::vector<float> patch_gradient_;
};

class Cnn final : public Model {
 public:
  explicit Cnn(std::uint64_t seed);

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  double Gradients(const Batch& batch, const std::vector<Tensor>& values, double divisor,
                   std::vector<Tensor>* gradients) override;
  std::span<const float> Scores(const Batch& batch, const std::vector<Tensor>& values) override;

 private:
  Convolution first_, second_;
  std::vector<Parameter> parameters_;
  std::vector<float> scores_;  // [batch][kClasses], then their gradient
  std::vector<float> first_gradient_, second_gradient_;
};

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_CNN_H_
