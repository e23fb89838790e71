#include "examples/fashion_mnist/model.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "examples/fashion_mnist/cnn.h"
#include "examples/fashion_mnist/mlp.h"
#include "examples/fashion_mnist/softmax_regression.h"

namespace leeway::fashion_mnist {

std::size_t Parameter::size() const {
  std::size_t size = 1;
  for (const std::uint64_t extent : shape) size *= extent;
  return size;
}

Initializer ForReLU(std::size_t inputs, std::uint64_t seed) {
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs));
  return Initializer::Uniform(-bound, bound, seed);
}

absl::StatusOr<std::unique_ptr<Model>> MakeModel(const std::string& name, std::uint64_t seed) {
  if (name == "softmax") return std::make_unique<SoftmaxRegression>();
  if (name == "mlp") return std::make_unique<Mlp>(seed);
  if (name == "cnn") return std::make_unique<Cnn>(seed);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no model '", name, "': there are softmax, mlp and cnn"));
}

}  // namespace leeway::fashion_mnist
