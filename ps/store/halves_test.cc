#include "ps/store/halves.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/random.h"

namespace leeway::ps {
namespace {

void Widen(const HalfKernels& kernels, const std::vector<Float16>& from, float* to) {
  kernels.widen_float16(from.data(), from.size(), to);
}
void Widen(const HalfKernels& kernels, const std::vector<BFloat16>& from, float* to) {
  kernels.widen_bfloat16(from.data(), from.size(), to);
}
void Narrow(const HalfKernels& kernels, const std::vector<float>& from, Float16* to) {
  kernels.narrow_float16(from.data(), from.size(), to);
}
void Narrow(const HalfKernels& kernels, const std::vector<float>& from, BFloat16* to) {
  kernels.narrow_bfloat16(from.data(), from.size(), to);
}

template <class Half>
class Halves : public testing::Test {};
using HalfTypes = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(Halves, HalfTypes);

const HalfKernels* const kKernels[] = {&PortableHalfKernels(), &FastestHalfKernels()};

// Every one of them becomes the float it stands for, and that float becomes it again.
TYPED_TEST(Halves, AllOfThemThereAndBack) {
  std::vector<TypeParam> halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<std::uint16_t>(i);
  for (const HalfKernels* kernels : kKernels) {
    std::vector<float> floats(halves.size());
    Widen(*kernels, halves, floats.data());
    std::vector<TypeParam> back(halves.size());
    Narrow(*kernels, floats, back.data());
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
  for (const HalfKernels* kernels : kKernels) {
    std::vector<TypeParam> halves(floats.size());
    Narrow(*kernels, floats, halves.data());
    for (std::size_t i = 0; i < floats.size(); ++i) {
      if (std::isnan(floats[i])) {
        ASSERT_TRUE(std::isnan(static_cast<float>(halves[i]))) << floats[i];
      } else {
        ASSERT_EQ(halves[i].bits, TypeParam(floats[i]).bits) << floats[i];
      }
    }
  }
}

}  // namespace
}  // namespace leeway::ps
