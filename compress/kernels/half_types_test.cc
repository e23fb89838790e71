#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "compress/kernels/testing/hard_values.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace {

template <class Half>
class Halves : public testing::Test {};
using HalfTypes = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Halves, HalfTypes);

template <class Half>
std::vector<float> Widened(Level level, const std::vector<Half>& halves) {
  std::vector<float> floats(halves.size());
  KernelsOf(level).halves.Of<Half>().decode(reinterpret_cast<const std::byte*>(halves.data()),
                                            halves.size(), floats.data());
  return floats;
}

template <class Half>
std::vector<Half> Narrowed(Level level, const std::vector<float>& floats) {
  std::vector<Half> halves(floats.size());
  KernelsOf(level).halves.Of<Half>().narrow(floats.data(), floats.size(),
                                            reinterpret_cast<std::byte*>(halves.data()));
  return halves;
}

// Every one of them becomes the float it stands for, and that float becomes it again.
TYPED_TEST(Halves, AllOfThemThereAndBack) {
  std::vector<TypeParam> halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<std::uint16_t>(i);
  for (const Level level : LevelsHere()) {
    const std::vector<float> floats = Widened(level, halves);
    const std::vector<TypeParam> back = Narrowed<TypeParam>(level, floats);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const float expected = static_cast<float>(halves[i]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(floats[i])) << i;
        ASSERT_TRUE(std::isnan(static_cast<float>(back[i]))) << i;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(floats[i]), std::bit_cast<std::uint32_t>(expected));
        ASSERT_EQ(back[i].bits, halves[i].bits);
      }
    }
  }
}

// Floats around every half, where rounding is decided, and many others.
template <class Half>
std::vector<float> HardFloats() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> floats = {0.0f,
                               -0.0f,
                               65504.0f,
                               65519.996f,
                               65520.0f,
                               65536.0f,
                               1e30f,
                               -1e30f,
                               3.3895314e38f,
                               Limits::max(),
                               Limits::infinity(),
                               Limits::denorm_min(),
                               Limits::quiet_NaN()};
  for (std::uint32_t i = 0; i < 1 << 16; ++i) {
    Half half, next;
    half.bits = static_cast<std::uint16_t>(i);
    next.bits = static_cast<std::uint16_t>(i + 1);
    const double sum = static_cast<double>(static_cast<float>(half)) +
                       static_cast<double>(static_cast<float>(next));
    const float middle = static_cast<float>(sum / 2);
    floats.insert(floats.end(),
                  {middle, std::nextafter(middle, 1e38f), std::nextafter(middle, -1e38f)});
  }
  runtime::Random random(1);
  for (int i = 0; i < 100000; ++i) {
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.Next())));
  }
  return floats;
}

TYPED_TEST(Halves, RoundAsTheTypesDo) {
  const std::vector<float> floats = HardFloats<TypeParam>();
  for (const Level level : LevelsHere()) {
    const std::vector<TypeParam> halves = Narrowed<TypeParam>(level, floats);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      if (std::isnan(floats[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(halves[i]))) << floats[i];
      } else {
        ASSERT_EQ(halves[i].bits, TypeParam(floats[i]).bits) << floats[i];
      }
    }
  }
}

// NaNs, too: those that signal become quiet everywhere.
TYPED_TEST(Halves, AllLevelsGiveTheSameBits) {
  std::vector<TypeParam> halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<std::uint16_t>(i);
  const std::vector<float> floats = HardFloats<TypeParam>();
  const std::vector<float> widened = Widened(Level::kScalar, halves);
  const std::vector<TypeParam> narrowed = Narrowed<TypeParam>(Level::kScalar, floats);
  for (const Level level : LevelsHere()) {
    const std::vector<float> wide = Widened(level, halves);
    ASSERT_EQ(std::memcmp(wide.data(), widened.data(), wide.size() * sizeof(float)), 0)
        << Name(level);
    ASSERT_EQ(Narrowed<TypeParam>(level, floats), narrowed) << Name(level);
  }
}

TYPED_TEST(Halves, AnyLengthAnywhere) {
  runtime::Random random(2);
  for (std::size_t size = 0; size <= 200; ++size) {
    const std::size_t start = random.Below(4);
    const auto halves = HardValues<TypeParam>(start + size, random);
    const auto floats = HardValues<float>(start + size, random);
    for (const Level level : LevelsHere()) {
      const auto& kernels = KernelsOf(level).halves.Of<TypeParam>();
      std::vector<float> wide(size + 1, 7);
      std::vector<TypeParam> narrow(size + 1, TypeParam(7));
      kernels.decode(reinterpret_cast<const std::byte*>(halves.data() + start), size, wide.data());
      kernels.narrow(floats.data() + start, size, reinterpret_cast<std::byte*>(narrow.data()));
      for (std::size_t i = 0; i < size; ++i) {
        ASSERT_TRUE(Same(wide[i], static_cast<float>(halves[start + i]))) << Name(level);
        ASSERT_TRUE(Same(narrow[i], TypeParam(floats[start + i]))) << Name(level);
      }
      ASSERT_EQ(wide[size], 7) << Name(level);
      ASSERT_EQ(narrow[size], TypeParam(7)) << Name(level);
    }
  }
}

}  // namespace
}  // namespace leeway::compress
