#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace sparse_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

std::vector<float> Values(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(7, size, i));
  }
  return values;
}

// Selects into memory of exactly `size` places, so that a sanitizer sees a write beyond them.
std::vector<std::uint32_t> Select(Level level, const std::vector<float>& values, float at_least,
                                  std::uint32_t first) {
  std::vector<std::uint32_t> places(values.size());
  places.resize(KernelsOf(level).sparse.select(
      values.data(), values.size(), std::bit_cast<std::uint32_t>(at_least), first, places.data()));
  return places;
}

TEST(SparseKernels, SelectWhatIsLargeEnough) {
  for (const Level level : LevelsHere()) {
    SCOPED_TRACE(Name(level));
    for (const std::size_t size : {0, 1, 15, 16, 17, 31, 32, 33, 1000, 4097}) {
      std::vector<float> values = Values(size);
      for (const float at_least : {0.0f, 1e-30f, 0.5f, 1.0f, 2.5f, 100.0f}) {
        if (size > 3) values[3] = -at_least;
        std::vector<std::uint32_t> expected;
        for (std::size_t i = 0; i < size; ++i) {
          if (std::abs(values[i]) >= at_least) {
            expected.push_back(static_cast<std::uint32_t>(1000 + i));
          }
        }
        EXPECT_EQ(Select(level, values, at_least, 1000), expected) << size << ' ' << at_least;
      }
    }
  }
}

TEST(SparseKernels, NanAndInfinityAreLargerThanEveryNumber) {
  for (const Level level : LevelsHere()) {
    for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
      for (const std::size_t place : {0, 17, 98}) {
        std::vector<float> values = Values(99);
        values[5] = kLargest;
        values[place] = bad;
        EXPECT_THAT(Select(level, values, kInfinity, 0), testing::ElementsAre(place));
      }
    }
    const std::vector<float> nans(40, kNan);
    std::vector<std::uint32_t> places(40);
    EXPECT_EQ(KernelsOf(level).sparse.select(nans.data(), 40, 0x80000000u, 0, places.data()), 0);
  }
}

// The bits of a place by the formula of sparse_kernels.h.
std::vector<std::uint32_t> BitsOf(std::uint32_t place, std::uint32_t bits, std::uint32_t hashes) {
  std::uint64_t hash = place;
  hash = (hash ^ (hash >> 16)) * 0x85ebca6b % (1ull << 32);
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35 % (1ull << 32);
  hash ^= hash >> 16;
  const std::uint64_t step = (((hash * 0x9e3779b9) % (1ull << 32)) ^ (hash >> 15)) | 1;
  std::vector<std::uint32_t> set;
  for (std::uint64_t j = 0; j < hashes; ++j) {
    const std::uint64_t bit = hash + j * step + j * (j - 1) / 2 * 0x7feb352d;
    set.push_back(static_cast<std::uint32_t>(bit % (1ull << 32) * bits >> 32));
  }
  return set;
}

TEST(SparseKernels, FiltersHoldWhatWasAddedAndLittleElse) {
  for (const std::uint32_t bits : {1u, 40u, 9586u}) {
    for (const std::uint32_t hashes : {1u, 2u, 7u}) {
      std::vector<std::uint32_t> added;
      for (std::uint32_t i = 0; i < bits / 10; ++i) {
        added.push_back(static_cast<std::uint32_t>(runtime::RandomAt(1, bits, i) % 100'000));
      }
      std::vector<bool> set(bits);
      for (const std::uint32_t place : added) {
        for (const std::uint32_t bit : BitsOf(place, bits, hashes)) set[bit] = true;
      }
      std::vector<std::uint32_t> expected;
      for (std::uint32_t place = 5; place < 100'005; ++place) {
        bool in = true;
        for (const std::uint32_t bit : BitsOf(place, bits, hashes)) in = in && set[bit];
        if (in) expected.push_back(place);
      }
      for (const Level level : LevelsHere()) {
        SCOPED_TRACE(Name(level));
        const SparseKernels& kernels = KernelsOf(level).sparse;
        std::vector<std::uint32_t> words((bits + 31) / 32);
        kernels.add_to_filter(added.data(), added.size(), bits, hashes, words.data());
        for (std::uint32_t bit = 0; bit < bits; ++bit) {
          ASSERT_EQ(words[bit / 32] >> bit % 32 & 1, set[bit]) << bit;
        }
        const BloomFilter filter = {.words = words.data(), .bits = bits, .hashes = hashes};
        std::vector<std::uint32_t> places(100'000);
        places.resize(kernels.select_in_filter(filter, 5, places.size(), places.data()));
        EXPECT_EQ(places, expected) << bits << ' ' << hashes;
        for (const std::size_t few : {0, 1, 15, 17}) {
          std::vector<std::uint32_t> some(few);
          some.resize(
              kernels.select_in_filter(filter, added.empty() ? 0 : added[0], few, some.data()));
          if (few > 0 && !added.empty()) {
            EXPECT_EQ(some.at(0), added[0]);
          }
        }
      }
    }
  }
}

TEST(SparseKernels, AddWhereBitsAreSet) {
  for (const Level level : LevelsHere()) {
    SCOPED_TRACE(Name(level));
    const auto add = KernelsOf(level).sparse.add_where_set;
    for (const std::size_t size : {0, 8, 16, 24, 64, 1000, 4096}) {
      for (const double share : {0.0, 0.1, 0.5, 0.97, 1.0}) {
        std::vector<std::byte> bitmap(size / 8);
        std::vector<float> sum = Values(size), values;
        if (size > 0) sum[size / 2] = -0.0f;
        std::vector<float> expected = sum;
        float largest = 0;
        for (std::size_t i = 0; i < size; ++i) {
          if (runtime::UniformAt(1, size, i) >= share) continue;
          bitmap[i / 8] |= static_cast<std::byte>(1u << i % 8);
          values.push_back(static_cast<float>(runtime::NormalAt(2, size, i)));
          largest = std::max(largest, std::abs(values.back()));
          expected[i] += -1.0f * values.back();
        }
        // In memory of exactly their size, at an odd address.
        std::vector<std::byte> bytes(1 + 4 * values.size());
        if (!values.empty()) std::memcpy(bytes.data() + 1, values.data(), 4 * values.size());
        EXPECT_EQ(add(bitmap.data(), size, bytes.data() + 1, values.size(), -1, sum.data()),
                  std::bit_cast<std::uint32_t>(largest));
        ASSERT_TRUE(size == 0 || std::memcmp(sum.data(), expected.data(), 4 * size) == 0)
            << size << ' ' << share;
      }
    }
    for (const std::size_t place : {0, 15, 16, 20, 39}) {
      std::vector<float> values(40, 1), sum(40);
      const std::vector<std::byte> bitmap(5, std::byte{0xff});
      values[place] = -kInfinity;
      EXPECT_EQ(add(bitmap.data(), 40, reinterpret_cast<const std::byte*>(values.data()), 40, 1,
                    sum.data()),
                0x7f800000u);
    }
  }
}

TEST(SparseKernels, AccumulateByTheFormula) {
  for (const Level level : LevelsHere()) {
    SCOPED_TRACE(Name(level));
    for (const std::size_t size : {0, 1, 7, 33, 1000}) {
      const std::vector<float> gradient = Values(size);
      std::vector<float> velocity(size, 0.5f), sum(size, -0.25f);
      KernelsOf(level).sparse.accumulate(gradient.data(), size, 0.3f, 0.9f, velocity.data(),
                                         sum.data());
      for (std::size_t i = 0; i < size; ++i) {
        const float kept = 0.9f * 0.5f, added = 0.3f * gradient[i];
        const float moved = kept + added;
        ASSERT_EQ(velocity[i], moved) << i;
        ASSERT_EQ(sum[i], -0.25f + moved) << i;
      }
    }
    const std::vector<float> large = {kLargest, -kLargest};
    std::vector<float> velocity = large, sum = large;
    KernelsOf(level).sparse.accumulate(large.data(), 2, 1, 0.9f, velocity.data(), sum.data());
    EXPECT_EQ(velocity, large);
    EXPECT_EQ(sum, large);
  }
}

}  // namespace
}  // namespace sparse_test
}  // namespace leeway::compress
