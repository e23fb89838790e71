// SaveParameters writes trained parameters to a file, as safetensors: the header's length (64 bits,
// little-endian), a JSON header with each tensor's type, shape and place, then the numbers. Equal
// parameters make equal files, byte for byte.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_PARAMETERS_FILE_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_PARAMETERS_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "examples/fashion_mnist/model.h"

namespace leeway::fashion_mnist {

absl::Status SaveParameters(const std::string& path, const std::vector<Parameter>& parameters,
                            const std::vector<Tensor>& values);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_PARAMETERS_FILE_H_
