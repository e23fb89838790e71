// LoadDataset reads labelled images from a folder of gzipped IDX files, the format in which MNIST
// was published:
//   magic (0, 0, 8 = unsigned byte, number of dimensions), each dimension as a big-endian 32-bit
//   number, then the bytes, row-major.
#ifndef LEEWAY_EXAMPLES_FASHION_MNIST_IDX_DATA_H_
#define LEEWAY_EXAMPLES_FASHION_MNIST_IDX_DATA_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leeway::fashion_mnist {

inline constexpr std::size_t kPixels = 28 * 28;
inline constexpr std::size_t kClasses = 10;
inline constexpr char kDefaultFolder[] = "/usr/share/datasets/fashion-mnist";

struct Images {
  std::vector<std::uint8_t> pixels;  // [size()][kPixels]
  std::vector<std::uint8_t> labels;  // [size()], each below kClasses

  std::size_t size() const { return labels.size(); }
  std::span<const std::uint8_t> image(std::size_t i) const {
    return {pixels.data() + i * kPixels, kPixels};
  }
};

struct Dataset {
  Images train;
  Images test;
};

// NOT_FOUND: the folder or a file is missing; names the package that contains it. INVALID_ARGUMENT:
// a file is malformed; names it and the fault.
absl::StatusOr<Dataset> LoadDataset(const std::string& folder);

// Loads one pair of files.
absl::StatusOr<Images> LoadImages(const std::string& images_path, const std::string& labels_path);

}  // namespace leeway::fashion_mnist

#endif  // LEEWAY_EXAMPLES_FASHION_MNIST_IDX_DATA_H_
