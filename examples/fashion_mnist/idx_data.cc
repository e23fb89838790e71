#include "examples/fashion_mnist/idx_data.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace leeway::fashion_mnist {
namespace {

// The largest number of images in one file; MNIST's largest relative has 814,255. Refuses absurd
// headers.
constexpr std::uint64_t kImagesMax = 10'000'000;
constexpr int kReadBytesMax = 1 << 20;  // at a time

struct GzClose {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzPointer = std::unique_ptr<gzFile_s, GzClose>;

// A gzipped IDX file opened at its first data byte.
class IdxFile {
 public:
  static absl::StatusOr<IdxFile> Open(const std::string& path, std::size_t dimensions) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) {
      return absl::NotFoundError(absl::StrCat(
          path, " does not exist: install Debian's dataset-fashion-mnist or name another folder"));
    }
    IdxFile file;
    file.path_ = path;
    file.gz_.reset(gzopen(path.c_str(), "rb"));
    if (file.gz_ == nullptr || std::filesystem::is_directory(path, error)) {
      return absl::PermissionDeniedError(absl::StrCat(path, " cannot be opened for reading"));
    }
    if (absl::Status status = file.ReadHeader(dimensions); !status.ok()) return status;
    return file;
  }

  const std::vector<std::uint64_t>& shape() const { return shape_; }

  // Reads everything after the header: exactly `size` bytes.
  absl::StatusOr<std::vector<std::uint8_t>> ReadAll(std::uint64_t size) {
    std::vector<std::uint8_t> bytes(size);
    if (absl::Status status = Read(bytes.data(), size); !status.ok()) return status;
    std::uint8_t extra;
    if (gzread(gz_.get(), &extra, 1) > 0) {
      return Wrong(absl::StrCat("holds more than the ", size, " bytes its header announces"));
    }
    return bytes;
  }

  absl::Status Wrong(const std::string& why) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, " ", why));
  }

 private:
  absl::Status ReadHeader(std::size_t dimensions) {
    std::uint8_t magic[4];
    if (absl::Status status = Read(magic, sizeof(magic)); !status.ok()) return status;
    if (magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] != dimensions) {
      return Wrong(absl::StrCat("is not an IDX file of bytes in ", dimensions,
                                " dimensions: it starts with ", magic[0], " ", magic[1], " ",
                                magic[2], " ", magic[3]));
    }
    for (std::size_t d = 0; d < dimensions; ++d) {
      std::uint8_t b[4];
      if (absl::Status status = Read(b, sizeof(b)); !status.ok()) return status;
      shape_.push_back(std::uint64_t{b[0]} << 24 | std::uint64_t{b[1]} << 16 |
                       std::uint64_t{b[2]} << 8 | std::uint64_t{b[3]});
    }
    if (shape_[0] > kImagesMax) {
      return Wrong(
          absl::StrCat("announces ", shape_[0], " entries; at most ", kImagesMax, " make sense"));
    }
    return absl::OkStatus();
  }

  absl::Status Read(std::uint8_t* to, std::uint64_t size) {
    while (size > 0) {
      const int part = static_cast<int>(std::min<std::uint64_t>(size, kReadBytesMax));
      const int got = gzread(gz_.get(), to, part);
      if (got < 0) {
        int code = 0;
        return Wrong(absl::StrCat("cannot be unpacked: ", gzerror(gz_.get(), &code)));
      }
      if (got == 0) return Wrong(absl::StrCat("is cut short: ", size, " more bytes should follow"));
      to += got;
      size -= static_cast<std::uint64_t>(got);
    }
    return absl::OkStatus();
  }

  std::string path_;
  GzPointer gz_;
  std::vector<std::uint64_t> shape_;
};

absl::StatusOr<std::vector<std::uint8_t>> LoadPixels(const std::string& path) {
  absl::StatusOr<IdxFile> file = IdxFile::Open(path, 3);
  if (!file.ok()) return file.status();
  const std::vector<std::uint64_t>& shape = file->shape();
  if (shape[1] != 28 || shape[2] != 28) {
    return file->Wrong(
        absl::StrCat("holds images of ", shape[1], "x", shape[2], " pixels instead of 28x28"));
  }
  return file->ReadAll(shape[0] * kPixels);
}

absl::StatusOr<std::vector<std::uint8_t>> LoadLabels(const std::string& path) {
  absl::StatusOr<IdxFile> file = IdxFile::Open(path, 1);
  if (!file.ok()) return file.status();
  absl::StatusOr<std::vector<std::uint8_t>> labels = file->ReadAll(file->shape()[0]);
  if (!labels.ok()) return labels;
  for (std::size_t i = 0; i < labels->size(); ++i) {
    if ((*labels)[i] >= kClasses) {
      return file->Wrong(absl::StrCat("gives image ", i, " the label ", (*labels)[i],
                                      "; labels are below ", kClasses));
    }
  }
  return labels;
}

}  // namespace

absl::StatusOr<Images> LoadImages(const std::string& images_path, const std::string& labels_path) {
  absl::StatusOr<std::vector<std::uint8_t>> pixels = LoadPixels(images_path);
  if (!pixels.ok()) return pixels.status();
  absl::StatusOr<std::vector<std::uint8_t>> labels = LoadLabels(labels_path);
  if (!labels.ok()) return labels.status();
  if (pixels->size() != labels->size() * kPixels) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, " holds ", pixels->size() / kPixels,
                                                   " images but ", labels_path, " holds ",
                                                   labels->size(), " labels"));
  }
  if (labels->empty()) return absl::InvalidArgumentError(absl::StrCat(images_path, " is empty"));
  return Images{*std::move(pixels), *std::move(labels)};
}

absl::StatusOr<Dataset> LoadDataset(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::NotFoundError(
        absl::StrCat("there is no folder ", folder,
                     ": install Debian's dataset-fashion-mnist or name another folder"));
  }
  absl::StatusOr<Images> train =
      LoadImages(folder + "/train-images-idx3-ubyte.gz", folder + "/train-labels-idx1-ubyte.gz");
  if (!train.ok()) return train.status();
  absl::StatusOr<Images> test =
      LoadImages(folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz");
  if (!test.ok()) return test.status();
  return Dataset{*std::move(train), *std::move(test)};
}

}  // namespace leeway::fashion_mnist
