#include "compress/sparse/largest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace largest_test {
namespace {

std::vector<float> Normal(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(3, size, i));
  }
  return values;
}

// The result by sorting all magnitudes.
std::vector<std::uint32_t> Expected(const std::vector<float>& values, std::size_t k,
                                    std::uint32_t first) {
  std::vector<std::uint32_t> places(values.size());
  std::iota(places.begin(), places.end(), 0u);
  std::ranges::stable_sort(places, [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  places.resize(k);
  std::ranges::sort(places);
  for (std::uint32_t& place : places) place += first;
  return places;
}

TEST(CountOfRatio, RoundsUpButNotWhatIsRoundingAlone) {
  EXPECT_EQ(CountOfRatio(0.01, 0), 0u);
  EXPECT_EQ(CountOfRatio(0.01, 1), 1u);
  EXPECT_EQ(CountOfRatio(0.01, 100), 1u);
  EXPECT_EQ(CountOfRatio(0.01, 101), 2u);
  EXPECT_EQ(CountOfRatio(0.07, 100), 7u);  // 0.07 × 100 = 7.000000000000001
  EXPECT_EQ(CountOfRatio(1.0, 12345), 12345u);
  EXPECT_EQ(CountOfRatio(1e-300, 12345), 1u);
  EXPECT_EQ(CountOfRatio(0.25, CodecShape{.elements = 20, .columns = 10}), 5u);
  EXPECT_EQ(CountOfRatio(0.25, CodecShape{.elements = 20, .columns = 10, .separate_rows = true}),
            6u);
  EXPECT_EQ(CountOfRatio(0.25, CodecShape{.elements = 21, .columns = 10, .separate_rows = true}),
            7u);
  EXPECT_EQ(CountOfRatio(0.25, CodecShape{.elements = 0, .columns = 0, .separate_rows = true}), 0u);
}

TEST(KthLargest, IsWhatSortingSays) {
  for (const std::size_t size : {1, 2, 100, 512, 513, 5000}) {
    for (const std::uint64_t distinct : {2ull, 50ull, 1ull << 31}) {
      std::vector<std::uint32_t> magnitudes(size);
      for (std::size_t i = 0; i < size; ++i) {
        magnitudes[i] = static_cast<std::uint32_t>(runtime::RandomAt(1, size, i) % distinct);
      }
      std::vector<std::uint32_t> sorted = magnitudes;
      std::ranges::sort(sorted, std::greater<>());
      for (const std::size_t k : {std::size_t{1}, size / 3 + 1, size}) {
        std::vector<std::uint32_t> work = magnitudes;
        const RankedMagnitude ranked = KthLargest(work.data(), size, k);
        EXPECT_EQ(ranked.magnitude, sorted[k - 1]) << size << ' ' << k;
        EXPECT_EQ(ranked.larger,
                  static_cast<std::size_t>(std::ranges::count_if(
                      sorted, [&](std::uint32_t one) { return one > sorted[k - 1]; })));
      }
    }
  }
}

// Sizes below and above those that are sampled; values on which a sample misleads.
TEST(PlaceFinder, FindsExactlyTheLargest) {
  PlaceFinder finder;
  for (const std::size_t size : {1, 2, 100, 4095, 4096, 50'001}) {
    std::vector<std::vector<float>> inputs = {Normal(size)};
    inputs.emplace_back(size, -0.5f);  // all equal
    inputs.push_back(Normal(size));    // few distinct ones
    for (float& value : inputs.back()) value = std::round(value);
    inputs.emplace_back(size, 0.0f);  // nearly all zero
    for (std::size_t i = 0; i < size; i += 333) inputs.back()[i] = static_cast<float>(i) - 7;
    inputs.emplace_back(size);  // sorted
    for (std::size_t i = 0; i < size; ++i) inputs.back()[i] = static_cast<float>(i);
    inputs.push_back(inputs.back());
    std::ranges::reverse(inputs.back());
    inputs.emplace_back(size);  // periodic
    for (std::size_t i = 0; i < size; ++i) inputs.back()[i] = i % 64 == 5 ? 9.0f : 1.0f;
    for (std::size_t which = 0; which < inputs.size(); ++which) {
      for (const double ratio : {0.0001, 0.01, 0.2, 0.97, 1.0}) {
        const std::size_t k = CountOfRatio(ratio, size);
        std::vector<std::uint32_t> places = {77};
        ASSERT_TRUE(finder.AppendLargest(inputs[which].data(), size, k, 1000, &places));
        EXPECT_EQ(places.front(), 77u);
        places.erase(places.begin());
        EXPECT_TRUE(places == Expected(inputs[which], k, 1000)) << size << ' ' << which << ' ' << k;
      }
    }
  }
}

TEST(PlaceFinder, FindsAllThatAreLargeEnough) {
  PlaceFinder finder;
  for (const std::size_t size : {1, 100, 4097, 10'000}) {
    const std::vector<float> values = Normal(size);
    for (const float least : {0.0f, 0.1f, 2.0f, 50.0f}) {
      std::vector<std::uint32_t> expected = {77}, places = {77};
      for (std::size_t i = 0; i < size; ++i) {
        if (std::abs(values[i]) >= least) expected.push_back(static_cast<std::uint32_t>(5 + i));
      }
      ASSERT_TRUE(finder.AppendAtLeast(values.data(), size, std::bit_cast<std::uint32_t>(least), 5,
                                       &places));
      EXPECT_TRUE(places == expected) << size << ' ' << least;
    }
  }
}

TEST(PlaceFinder, NoticesNanAndInfinityAnywhere) {
  PlaceFinder finder;
  for (const std::size_t size : {10, 5000}) {
    for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
        std::vector<float> values = Normal(size);
        values[place] = bad;
        std::vector<std::uint32_t> places;
        for (const std::size_t k : {std::size_t{1}, size / 3, size}) {
          EXPECT_FALSE(finder.AppendLargest(values.data(), size, k, 0, &places)) << size;
        }
        EXPECT_FALSE(finder.AppendAtLeast(values.data(), size, std::bit_cast<std::uint32_t>(3.0f),
                                          0, &places));
      }
    }
    const std::vector<float> nans(size, std::numeric_limits<float>::quiet_NaN());
    std::vector<std::uint32_t> places;
    EXPECT_FALSE(finder.AppendLargest(nans.data(), size, 5, 0, &places));
  }
}

}  // namespace
}  // namespace largest_test
}  // namespace leeway::compress
