#include "examples/fashion_mnist/idx_data.h"

#include <zlib.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::fashion_mnist {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

std::string BigEndian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string ImageFile(std::uint32_t count, std::uint32_t side = 28) {
  return std::string("\0\0\x08\x03", 4) + BigEndian(count) + BigEndian(side) + BigEndian(side) +
         std::string(std::size_t{count} * side * side, '\x11');
}

std::string LabelFile(const std::string& labels) {
  return std::string("\0\0\x08\x01", 4) + BigEndian(static_cast<std::uint32_t>(labels.size())) +
         labels;
}

class IdxDataTest : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "idx_data_test_" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

  // The error of loading these two files.
  std::string ErrorOf(const std::string& images, const std::string& labels) {
    const absl::Status status =
        LoadImages(Write("images", images), Write("labels", labels)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    return std::string(status.message());
  }

  std::string folder_;
};

TEST_F(IdxDataTest, ReadsImagesAndLabels) {
  std::string images = ImageFile(2);
  images.back() = '\xff';
  const auto loaded =
      LoadImages(Write("images", images), Write("labels", LabelFile(std::string("\x09\x00", 2))));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->size(), 2u);
  EXPECT_EQ(loaded->labels[0], 9);
  EXPECT_EQ(loaded->image(0)[0], 0x11);
  EXPECT_EQ(loaded->image(1)[kPixels - 1], 0xff);
}

TEST_F(IdxDataTest, MissingFolderNamesThePackage) {
  const absl::Status status = LoadDataset(folder_ + "/nowhere").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(folder_ + "/nowhere"), HasSubstr("dataset-fashion-mnist")));
}

TEST_F(IdxDataTest, MissingFileNamesThePackage) {
  const absl::Status status = LoadDataset(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("train-images-idx3-ubyte.gz"), HasSubstr("dataset-fashion-mnist")));
}

TEST_F(IdxDataTest, BadMagic) {
  std::string images = ImageFile(1);
  images[2] = 0x0d;  // floats
  EXPECT_THAT(ErrorOf(images, LabelFile("\x01")), HasSubstr("starts with 0 0 13 3"));
  EXPECT_THAT(ErrorOf(LabelFile("\x01"), LabelFile("\x01")), HasSubstr("starts with 0 0 8 1"));
  EXPECT_THAT(ErrorOf(ImageFile(1), ImageFile(1)), HasSubstr("in 1 dimensions"));
}

TEST_F(IdxDataTest, CutShortAnywhere) {
  const std::string images = ImageFile(1);
  for (const std::size_t size : {0u, 3u, 4u, 11u, 16u, 799u}) {
    EXPECT_THAT(ErrorOf(images.substr(0, size), LabelFile("\x01")), HasSubstr("is cut short"));
  }
  EXPECT_THAT(ErrorOf(images, LabelFile("\x01").substr(0, 8)), HasSubstr("is cut short"));
}

TEST_F(IdxDataTest, CompressedStreamCutShort) {
  const std::string path = Write("images", ImageFile(50));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 12);
  const absl::Status status = LoadImages(path, Write("labels", LabelFile("\x01"))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

TEST_F(IdxDataTest, TooMuch) {
  EXPECT_THAT(ErrorOf(ImageFile(1) + "x", LabelFile("\x01")), HasSubstr("holds more than the 784"));
}

TEST_F(IdxDataTest, AbsurdCountAllocatesNothing) {
  std::string images = ImageFile(0);
  images.replace(4, 4, BigEndian(0xffffffff));
  EXPECT_THAT(ErrorOf(images, LabelFile("\x01")), HasSubstr("announces 4294967295 entries"));
}

TEST_F(IdxDataTest, WrongShape) {
  EXPECT_THAT(ErrorOf(ImageFile(1, 32), LabelFile("\x01")), HasSubstr("32x32 pixels"));
}

TEST_F(IdxDataTest, CountsDisagree) {
  EXPECT_THAT(ErrorOf(ImageFile(3), LabelFile("\x01\x02")),
              AllOf(HasSubstr("3 images"), EndsWith("2 labels")));
}

TEST_F(IdxDataTest, LabelOutOfRange) {
  EXPECT_THAT(ErrorOf(ImageFile(2), LabelFile("\x01\x0a")),
              HasSubstr("gives image 1 the label 10"));
}

TEST_F(IdxDataTest, Empty) {
  EXPECT_THAT(ErrorOf(ImageFile(0), LabelFile("")), EndsWith("is empty"));
}

TEST_F(IdxDataTest, AFolderIsNotAFile) { EXPECT_FALSE(LoadImages(folder_, folder_).ok()); }

}  // namespace
}  // namespace leeway::fashion_mnist
