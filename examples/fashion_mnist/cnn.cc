#include "examples/fashion_mnist/cnn.h"

#include <algorithm>

#include "examples/fashion_mnist/cross_entropy.h"
#include "examples/fashion_mnist/idx_data.h"
#include "examples/fashion_mnist/matrix.h"

namespace leeway::fashion_mnist {
namespace {

enum : std::size_t {
  kConv1Weight,
  kConv1Bias,
  kConv2Weight,
  kConv2Bias,
  kLinearWeight,
  kLinearBias
};
constexpr std::size_t kConvStride = 2;

}  // namespace

Convolution::Convolution(std::size_t side, std::size_t channels, std::size_t kernel,
                         std::size_t out_channels)
    : side_(side),
      channels_(channels),
      kernel_(kernel),
      out_side_((side - kernel) / kConvStride + 1),
      out_channels_(out_channels) {}

// visit(place in the images, place in the patches): the first of kernel · channels numbers that are
// neighbours in both.
template <class Visit>
void Convolution::ForEachPatchRow(std::size_t count, Visit visit) const {
  std::size_t patch = 0;
  for (std::size_t image = 0; image < count; ++image) {
    for (std::size_t y = 0; y < out_side_; ++y) {
      for (std::size_t x = 0; x < out_side_; ++x) {
        for (std::size_t row = 0; row < kernel_; ++row, patch += kernel_ * channels_) {
          const std::size_t pixel =
              (image * side_ + y * kConvStride + row) * side_ + x * kConvStride;
          visit(pixel * channels_, patch);
        }
      }
    }
  }
}

const std::vector<float>& Convolution::Forward(const float* images, std::size_t count,
                                               const Tensor& weight, const Tensor& bias) {
  const std::size_t rows = count * out_side_ * out_side_;
  patches_.resize(rows * inputs());
  ForEachPatchRow(count, [&](std::size_t from, std::size_t to) {
    std::copy_n(images + from, kernel_ * channels_, patches_.data() + to);
  });
  FillRows(bias, rows, &outputs_);
  AddProduct(patches_.data(), weight.data(), outputs_.data(), rows, inputs(), out_channels_);
  for (float& output : outputs_) output = std::max(output, 0.0f);
  return outputs_;
}

void Convolution::Backward(std::vector<float>* out_gradient, const Tensor& weight,
                           Tensor* weight_gradient, Tensor* bias_gradient,
                           std::vector<float>* image_gradient) {
  const std::size_t rows = outputs_.size() / out_channels_;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] <= 0) (*out_gradient)[i] = 0;
  }
  weight_gradient->assign(inputs() * out_channels_, 0.0f);
  AddTransposedProduct(patches_.data(), out_gradient->data(), weight_gradient->data(), inputs(),
                       rows, out_channels_);
  SumRows(*out_gradient, *bias_gradient);
  if (image_gradient == nullptr) return;
  const std::vector<float> back = Transposed(weight, inputs(), out_channels_);
  patch_gradient_.assign(rows * inputs(), 0.0f);
  AddProduct(out_gradient->data(), back.data(), patch_gradient_.data(), rows, out_channels_,
             inputs());
  const std::size_t count = rows / (out_side_ * out_side_);
  image_gradient->assign(count * side_ * side_ * channels_, 0.0f);
  ForEachPatchRow(count, [&](std::size_t to, std::size_t from) {
    for (std::size_t i = 0; i < kernel_ * channels_; ++i) {
      (*image_gradient)[to + i] += patch_gradient_[from + i];
    }
  });
}

Cnn::Cnn(std::uint64_t seed)
    : first_(28, 1, 5, 8),
      second_(first_.out_side(), first_.out_channels(), 3, 16),
      parameters_{{"conv1.weight",
                   {first_.inputs(), first_.out_channels()},
                   ForReLU(first_.inputs(), seed)},
                  {"conv1.bias", {first_.out_channels()}, Initializer::Zeros()},
                  {"conv2.weight",
                   {second_.inputs(), second_.out_channels()},
                   ForReLU(second_.inputs(), seed)},
                  {"conv2.bias", {second_.out_channels()}, Initializer::Zeros()}} {
  const std::size_t inputs = second_.out_side() * second_.out_side() * second_.out_channels();
  parameters_.push_back({"fc.weight", {inputs, kClasses}, ForReLU(inputs, seed)});
  parameters_.push_back({"fc.bias", {kClasses}, Initializer::Zeros()});
}

std::span<const float> Cnn::Scores(const Batch& batch, const std::vector<Tensor>& values) {
  const std::size_t n = batch.size();
  const std::vector<float>& first =
      first_.Forward(batch.inputs.data(), n, values[kConv1Weight], values[kConv1Bias]);
  const std::vector<float>& second =
      second_.Forward(first.data(), n, values[kConv2Weight], values[kConv2Bias]);
  FillRows(values[kLinearBias], n, &scores_);
  AddProduct(second.data(), values[kLinearWeight].data(), scores_.data(), n,
             parameters_[kLinearWeight].shape[0], kClasses);
  second_gradient_ = second;
  return scores_;
}

double Cnn::Gradients(const Batch& batch, const std::vector<Tensor>& values, double divisor,
                      std::vector<Tensor>* gradients) {
  const std::size_t n = batch.size(), inputs = parameters_[kLinearWeight].shape[0];
  std::vector<Tensor>& g = *gradients;
  Scores(batch, values);
  const double loss = CrossEntropy(batch.labels, divisor, std::span<float>(scores_));

  // second_gradient_ has the outputs of the second layer until it gets the gradient by them.
  g[kLinearWeight].assign(inputs * kClasses, 0.0f);
  AddTransposedProduct(second_gradient_.data(), scores_.data(), g[kLinearWeight].data(), inputs, n,
                       kClasses);
  SumRows(scores_, g[kLinearBias]);
  const std::vector<float> back = Transposed(values[kLinearWeight], inputs, kClasses);
  second_gradient_.assign(n * inputs, 0.0f);
  AddProduct(scores_.data(), back.data(), second_gradient_.data(), n, kClasses, inputs);
  second_.Backward(&second_gradient_, values[kConv2Weight], &g[kConv2Weight], &g[kConv2Bias],
                   &first_gradient_);
  first_.Backward(&first_gradient_, values[kConv1Weight], &g[kConv1Weight], &g[kConv1Bias],
                  nullptr);
  return loss;
}

}  // namespace leeway::fashion_mnist
