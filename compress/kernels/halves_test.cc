#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leeway/dtype.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace halves_test {
namespace {

struct HalfFormat {
  const char* name;
  HalfKernels HalvesKernels::*kernels;
  std::uint16_t (*narrow)(float);
  float (*widen)(std::uint16_t);
  std::uint16_t infinity;
};

constexpr HalfFormat kHalfFormats[] = {
    {"fp16", &HalvesKernels::fp16, [](float value) { return Float16(value).bits; },
     [](std::uint16_t bits) {
       Float16 half;
       half.bits = bits;
       return static_cast<float>(half);
     },
     0x7c00},
    {"bf16", &HalvesKernels::bf16, [](float value) { return BFloat16(value).bits; },
     [](std::uint16_t bits) {
       BFloat16 half;
       half.bits = bits;
       return static_cast<float>(half);
     },
     0x7f80}};

// Random bits are numbers of every magnitude, some NaN; then all floats that a half represents
// exactly, and those beside the middle between two.
std::vector<float> HalfValues(const HalfFormat& format) {
  std::vector<float> values = {0.0f, -0.0f, 65504.0f, 65519.996f, 65520.0f, 65536.0f, 1e30f};
  for (const float value :
       {std::numeric_limits<float>::max(), std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    values.insert(values.end(), {value, -value});
  }
  for (std::uint64_t i = 0; i < 20000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(runtime::RandomAt(1, 2, i))));
  }
  for (std::uint32_t bits = 0; bits < 0x10000; bits += 7) {
    const float value = format.widen(static_cast<std::uint16_t>(bits));
    const float next = format.widen(static_cast<std::uint16_t>(bits ^ 1));
    const float middle = value / 2 + next / 2;
    values.insert(values.end(),
                  {value, middle, std::nextafter(middle, value), std::nextafter(middle, next)});
  }
  return values;
}

bool SameWidened(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<int>(a) == std::bit_cast<int>(b);
}

TEST(HalvesKernels, RoundAsTheTypesDoAndStayFinite) {
  for (const HalfFormat& format : kHalfFormats) {
    SCOPED_TRACE(format.name);
    const std::vector<float> values = HalfValues(format);
    for (const Level level : LevelsHere()) {
      SCOPED_TRACE(Name(level));
      const HalfKernels& kernels = KernelsOf(level).halves.*format.kernels;
      std::vector<std::byte> memory(2 * values.size() + 1);
      std::byte* const halves = memory.data() + 1;
      kernels.encode(values.data(), values.size(), halves);
      std::vector<float> decoded(values.size()), sum(values.size(), 0.3f), carried = values;
      kernels.decode(halves, values.size(), decoded.data());
      kernels.decode_add(halves, values.size(), -1, sum.data());
      std::vector<std::byte> again(2 * values.size());
      kernels.encode_and_subtract(carried.data(), values.size(), again.data());
      EXPECT_EQ(std::memcmp(again.data(), halves, again.size()), 0);
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint16_t half;
        std::memcpy(&half, halves + 2 * i, 2);
        std::uint16_t expected = format.narrow(values[i]);
        if (std::isfinite(values[i]) && (expected & 0x7fff) == format.infinity) --expected;
        if (std::isnan(values[i])) {
          ASSERT_GT(half & 0x7fff, format.infinity);
        } else {
          ASSERT_EQ(half, expected) << values[i];
        }
        ASSERT_TRUE(SameWidened(decoded[i], format.widen(half))) << values[i];
        ASSERT_TRUE(SameWidened(sum[i], 0.3f + -1.0f * decoded[i])) << values[i];
        ASSERT_TRUE(
            SameWidened(carried[i], std::isfinite(values[i]) ? values[i] - decoded[i] : 0.0f))
            << values[i];
      }
    }
  }
}

TEST(HalvesKernels, WidenAllThereAre) {
  std::vector<std::uint16_t> all(0x10000);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  for (const HalfFormat& format : kHalfFormats) {
    for (const Level level : LevelsHere()) {
      std::vector<float> values(all.size());
      (KernelsOf(level).halves.*format.kernels)
          .decode(reinterpret_cast<const std::byte*>(all.data()), all.size(), values.data());
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_TRUE(SameWidened(values[i], format.widen(all[i]))) << format.name << ' ' << i;
      }
    }
  }
}

TEST(HalvesKernels, AllLevelsGiveTheSameBitsAtEveryLength) {
  for (const HalfFormat& format : kHalfFormats) {
    const std::vector<float> values = HalfValues(format);
    for (const std::size_t size : {0, 1, 7, 8, 9, 15, 31, 32, 33, 1001}) {
      std::vector<std::byte> scalar(2 * size + 1), bytes(2 * size + 1);
      (KernelsOf(Level::kScalar).halves.*format.kernels).encode(values.data(), size, scalar.data());
      for (const Level level : LevelsHere()) {
        (KernelsOf(level).halves.*format.kernels).encode(values.data(), size, bytes.data());
        EXPECT_EQ(bytes, scalar) << format.name << ' ' << Name(level) << ' ' << size;
      }
    }
  }
}

}  // namespace
}  // namespace halves_test
}  // namespace leeway::compress
