// A Model is a classifier: its parameter tensors, and the gradient of its loss with respect to
// them.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_MODEL_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/table_spec.h"

namespace leeway::fashion_mnist {

// One parameter tensor, with the description of its table.
struct Parameter {
  std::string name;
  std::vector<std::uint64_t> shape;
  Initializer initializer;

  std::size_t size() const;
};

using Tensor = std::vector<float>;

// Inputs, one row a sample, and their labels.
struct Batch {
  std::vector<float> inputs;         // [size()][kPixels], about mean 0 and variance 1
  std::vector<std::uint8_t> labels;  // [size()]

  std::size_t size() const { return labels.size(); }
};

// He et al. 2015: keeps the variance of values that pass a ReLU layer.
Initializer ForReLU(std::size_t inputs, std::uint64_t seed);

class Model {
 public:
  virtual ~Model() = default;

  virtual const std::vector<Parameter>& parameters() const = 0;

  // values[i] and (*gradients)[i] belong to parameters()[i]. The loss of a sample is its cross
  // entropy; gradients become those of the sum of the batch's losses, divided by `divisor` (the
  // batch's size, for the mean). Returns the sum of the losses.
  virtual double Gradients(const Batch& batch, const std::vector<Tensor>& values, double divisor,
                           std::vector<Tensor>* gradients) = 0;

  // Scores of each class, [batch.size()][kClasses]; the class with the highest is the guess.
  virtual std::span<const float> Scores(const Batch& batch, const std::vector<Tensor>& values) = 0;
};

// "softmax": one linear layer. "mlp": 784–128–10 with ReLU. "cnn": two convolutions (cnn.h). `seed`
// is for the initial values.
absl::StatusOr<std::unique_ptr<Model>> MakeModel(const std::string& name, std::uint64_t seed);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_MODEL_H_
