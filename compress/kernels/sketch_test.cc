#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/mix.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace sketch_test {
namespace {

// A place by the formula of sketch_kernels.h.
struct SketchPlace {
  std::size_t place;
  bool turned;
};
SketchPlace SketchPlaceOf(const SketchTable& table, std::size_t row, std::uint64_t element) {
  const auto seed =
      static_cast<std::uint32_t>(runtime::Mix(table.seed + row + (element >> 32) * 256));
  auto h = static_cast<std::uint32_t>(element) ^ seed;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  h ^= h >> 16;
  return {.place = static_cast<std::size_t>((std::uint64_t{h} * table.width) >> 32),
          .turned = h % 2 == 1};
}

std::vector<float> SketchValues(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(8, size, i));
  }
  return values;
}

// SketchCells at an odd address.
class SketchCells {
 public:
  explicit SketchCells(const SketchTable& table)
      : size_(table.rows * table.width), bytes_(1 + size_ * sizeof(float)) {}
  void* data() { return bytes_.data() + 1; }
  std::vector<float> Copy() const {
    std::vector<float> copy(size_);
    std::memcpy(copy.data(), bytes_.data() + 1, size_ * sizeof(float));
    return copy;
  }

 private:
  std::size_t size_;
  std::vector<char> bytes_;
};

TEST(SketchKernels, AllLevelsFollowTheFormulas) {
  for (const std::size_t rows : {1, 3, 5, 7, 9}) {
    for (const std::size_t size : {1, 31, 256, 257, 1000}) {
      const SketchTable table = {.seed = 99 + size, .rows = rows, .width = 37};
      const std::vector<float> values = SketchValues(size);
      std::vector<float> cells(rows * table.width);
      for (std::size_t row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < size; ++i) {
          const auto [place, turned] = SketchPlaceOf(table, row, i);
          cells[row * table.width + place] += 0.5f * (turned ? -values[i] : values[i]);
        }
      }
      std::vector<float> medians(size);
      for (std::size_t i = 0; i < size; ++i) {
        std::vector<float> estimates;
        for (std::size_t row = 0; row < rows; ++row) {
          const auto [place, turned] = SketchPlaceOf(table, row, i);
          const float cell = cells[row * table.width + place];
          estimates.push_back(turned ? -cell : cell);
        }
        std::ranges::sort(estimates);
        medians[i] = 2 * estimates[rows / 2];
      }
      for (const Level level : LevelsHere()) {
        SCOPED_TRACE(testing::Message() << Name(level) << ' ' << rows << ' ' << size);
        const SketchKernels& kernels = KernelsOf(level).sketch;
        SketchCells found(table);
        kernels.add(values.data(), size, 0.5f, table, found.data());
        EXPECT_EQ(found.Copy(), cells);
        std::vector<float> estimated(size);
        kernels.estimate(found.data(), table, 0, size, 2, estimated.data());
        EXPECT_EQ(estimated, medians);
        if (size <= 256) continue;
        // The second half alone.
        kernels.estimate(found.data(), table, 256, size - 256, 2, estimated.data());
        EXPECT_TRUE(std::equal(medians.begin() + 256, medians.end(), estimated.begin()));
      }
    }
  }
}

TEST(SketchKernels, ElementsBeyond32BitsHavePlacesOfTheirOwn) {
  const SketchTable table = {.seed = 5, .rows = 1, .width = 1000};
  SketchCells cells(table);
  const std::vector<float> ones(256, 1.0f);
  ChosenKernels().sketch.add(ones.data(), 256, 1, table, cells.data());
  constexpr std::uint64_t kFar = std::uint64_t{3} << 32;
  const std::vector<float> filled = cells.Copy();
  std::vector<float> near(256), far(256), expected(256);
  for (const Level level : LevelsHere()) {
    KernelsOf(level).sketch.estimate(cells.data(), table, 0, 256, 1, near.data());
    KernelsOf(level).sketch.estimate(cells.data(), table, kFar, 256, 1, far.data());
    for (std::size_t i = 0; i < 256; ++i) {
      const auto [place, turned] = SketchPlaceOf(table, 0, kFar + i);
      expected[i] = turned ? -filled[place] : filled[place];
    }
    EXPECT_EQ(far, expected) << Name(level);
    EXPECT_NE(far, near);
  }
}

TEST(SketchKernels, EstimatesAreClamped) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const SketchTable table = {.seed = 5, .rows = 3, .width = 2};
  const std::vector<float> values(64, 1e20f);
  for (const Level level : LevelsHere()) {
    SketchCells cells(table);
    KernelsOf(level).sketch.add(values.data(), 1, 1, table, cells.data());
    std::vector<float> estimated(64);
    KernelsOf(level).sketch.estimate(cells.data(), table, 0, 64, 0x1p64f, estimated.data());
    EXPECT_EQ(estimated[0], kLargest);
    for (const float one : estimated) EXPECT_TRUE(one == 0 || std::abs(one) == kLargest);
    EXPECT_THAT(estimated, testing::Contains(-kLargest)) << Name(level);
  }
}

}  // namespace
}  // namespace sketch_test
}  // namespace leeway::compress
