#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace eight_bit_test {
namespace {

// All magnitudes up to `largest`, many of them small, some a middle between integers.
std::vector<float> EightBitValues(float largest, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double part = 2 * runtime::UniformAt(3, 4, i) - 1;
    values[i] = largest * static_cast<float>(i % 3 == 0 ? part : std::pow(part, 21));
    if (i % 7 == 0) values[i] = std::round(values[i] * 2) / 2;
  }
  if (size > 2) values[0] = largest, values[1] = -largest, values[2] = -0.0f;
  return values;
}

struct Fp8Format {
  Fp8Kernels EightBitKernels::*kernels;
  int fraction, bias, largest;
};
constexpr Fp8Format kFp8Formats[] = {{&EightBitKernels::e4m3, 3, 7, 0x7e},
                                     {&EightBitKernels::e5m2, 2, 15, 0x7b}};

double Fp8Number(const Fp8Format& format, int code) {
  const int exponent = (code & 0x7f) >> format.fraction;
  const int fraction = code & ((1 << format.fraction) - 1);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - format.bias - format.fraction)
                                         : std::ldexp(fraction + (1 << format.fraction),
                                                      exponent - format.bias - format.fraction);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// The nearest number; of two equally near ones the even one.
int NearestFp8(const Fp8Format& format, double value) {
  const double magnitude = std::min(std::abs(value), Fp8Number(format, format.largest));
  int best = 0;
  for (int code = 1; code <= format.largest; ++code) {
    const double off = std::abs(magnitude - Fp8Number(format, code));
    const double best_off = std::abs(magnitude - Fp8Number(format, best));
    if (off < best_off || (off == best_off && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 0x80 : 0);
}

TEST(EightBitKernels, Fp8IsTheNearestNumber) {
  for (const Fp8Format& format : kFp8Formats) {
    std::vector<float> values = EightBitValues(600, 2000);
    for (int code = 0; code < format.largest; ++code) {
      const double low = Fp8Number(format, code), high = Fp8Number(format, code + 1);
      const auto middle = static_cast<float>((low + high) / 2);
      values.insert(values.end(), {static_cast<float>(-low), middle, std::nextafter(middle, 0.0f),
                                   std::nextafter(middle, 1e9f)});
    }
    values.insert(values.end(), {1e6f, -1e30f});
    for (const Level level : LevelsHere()) {
      const Fp8Kernels& kernels = KernelsOf(level).eight_bit.*format.kernels;
      for (const float scale : {1.0f, 0x1p-20f, 0x1p7f, 0x1p-126f}) {
        std::vector<float> scaled = values;
        for (float& value : scaled) value = std::min(value * scale, 1e38f);
        std::vector<std::byte> codes(values.size()), again(values.size());
        kernels.encode(scaled.data(), scaled.size(), scale, codes.data());
        std::vector<float> decoded(values.size()), sum(values.size(), 0.7f), carried = scaled;
        kernels.decode(codes.data(), codes.size(), scale, decoded.data());
        kernels.decode_add(codes.data(), codes.size(), scale, -1, sum.data());
        kernels.encode_and_subtract(carried.data(), carried.size(), scale, again.data());
        EXPECT_EQ(again, codes);
        for (std::size_t i = 0; i < scaled.size(); ++i) {
          const auto code = static_cast<int>(codes[i]);
          ASSERT_EQ(code,
                    NearestFp8(format, static_cast<double>(scaled[i]) / static_cast<double>(scale)))
              << Name(level) << ' ' << scaled[i] << ' ' << scale;
          ASSERT_EQ(static_cast<double>(decoded[i]),
                    Fp8Number(format, code) * static_cast<double>(scale));
          ASSERT_EQ(std::signbit(decoded[i]), (code & 0x80) != 0);
          ASSERT_EQ(sum[i], 0.7f - decoded[i]);
          ASSERT_EQ(carried[i], scaled[i] - decoded[i]);
        }
      }
    }
  }
}

TEST(EightBitKernels, Int8IsTheNearestInteger) {
  for (const Level level : LevelsHere()) {
    const Int8Kernels& kernels = KernelsOf(level).eight_bit.int8;
    for (const float scale : {1.0f, 0.037f, 1e30f, 0x1p-126f}) {
      std::vector<float> values = EightBitValues(127, 3000);
      for (float& value : values) value *= scale;
      std::vector<std::byte> codes(values.size()), again(values.size());
      kernels.encode(values.data(), values.size(), scale, codes.data());
      std::vector<float> decoded(values.size()), sum(values.size(), 0.7f), carried = values;
      kernels.decode(codes.data(), codes.size(), scale, decoded.data());
      kernels.decode_add(codes.data(), codes.size(), scale, -1, sum.data());
      kernels.encode_and_subtract(carried.data(), carried.size(), scale, again.data());
      EXPECT_EQ(again, codes);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto code = static_cast<std::int8_t>(codes[i]);
        ASSERT_EQ(static_cast<float>(code), std::nearbyint(values[i] / scale)) << Name(level);
        ASSERT_EQ(decoded[i], static_cast<float>(code) * scale);
        ASSERT_EQ(sum[i], 0.7f - decoded[i]);
        ASSERT_EQ(carried[i], values[i] - decoded[i]);
      }
    }
  }
}

TEST(EightBitKernels, RandomRoundingIsOneOfTheNeighboursAndRightInTheMean) {
  const std::vector<float> values = {-127, -126.75f, -3.5f, -0.125f, 0, 0.25f, 5, 126.5f, 127};
  constexpr int kTimes = 20000;
  std::vector<std::byte> codes(values.size()), again(values.size());
  std::vector<double> mean(values.size());
  const Int8Kernels& kernels = KernelsOf(Level::kScalar).eight_bit.int8;
  for (std::uint64_t k = 0; k < kTimes; ++k) {
    const std::uint64_t key = runtime::RandomAt(1, 2, k);
    kernels.encode_random(values.data(), values.size(), 1, key, codes.data());
    std::vector<float> carried = values;
    kernels.encode_random_and_subtract(carried.data(), carried.size(), 1, key, again.data());
    ASSERT_EQ(again, codes);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto code = static_cast<float>(static_cast<std::int8_t>(codes[i]));
      ASSERT_LT(std::abs(code - values[i]), 1);
      ASSERT_EQ(carried[i], values[i] - code);
      mean[i] += static_cast<double>(code) / kTimes;
    }
  }
  // Five deviations of the mean of as many coins.
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(mean[i], static_cast<double>(values[i]), 5 * 0.5 / std::sqrt(kTimes)) << values[i];
  }
}

// A value a bit above 127 scales, as the division may give, stays within a byte.
TEST(EightBitKernels, RandomRoundingStaysWithin127) {
  std::vector<float> values(4096, std::nextafter(127.0f, 128.0f));
  for (std::size_t i = 0; i < values.size(); i += 2) values[i] = -values[i];
  std::vector<std::byte> codes(values.size());
  for (const Level level : LevelsHere()) {
    KernelsOf(level).eight_bit.int8.encode_random(values.data(), values.size(), 1, 77,
                                                  codes.data());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(static_cast<std::int8_t>(codes[i]), i % 2 == 0 ? -127 : 127);
    }
  }
}

TEST(EightBitKernels, AllLevelsGiveTheSameBytesAtEveryLength) {
  for (const std::size_t size : {0, 1, 15, 31, 32, 33, 256, 1001}) {
    const std::vector<float> values = EightBitValues(126, size);
    const EightBitKernels& scalar = KernelsOf(Level::kScalar).eight_bit;
    std::vector<std::byte> expected(size), bytes(size);
    for (const Level level : LevelsHere()) {
      const EightBitKernels& kernels = KernelsOf(level).eight_bit;
      scalar.int8.encode_random(values.data(), size, 1.01f, 0x123456789abcdef, expected.data());
      kernels.int8.encode_random(values.data(), size, 1.01f, 0x123456789abcdef, bytes.data());
      EXPECT_EQ(bytes, expected) << Name(level) << ' ' << size;
      std::vector<float> one = values, other = values;
      scalar.int8.encode_random_and_subtract(one.data(), size, 1.01f, 9, expected.data());
      kernels.int8.encode_random_and_subtract(other.data(), size, 1.01f, 9, bytes.data());
      EXPECT_EQ(bytes, expected) << Name(level) << ' ' << size;
      EXPECT_EQ(other, one) << Name(level) << ' ' << size;
      scalar.int8.encode(values.data(), size, 1.01f, expected.data());
      kernels.int8.encode(values.data(), size, 1.01f, bytes.data());
      EXPECT_EQ(bytes, expected) << Name(level) << ' ' << size;
      for (const Fp8Format& format : kFp8Formats) {
        (scalar.*format.kernels).encode(values.data(), size, 0.25f, expected.data());
        (kernels.*format.kernels).encode(values.data(), size, 0.25f, bytes.data());
        EXPECT_EQ(bytes, expected) << Name(level) << ' ' << size;
      }
    }
  }
}

TEST(EightBitKernels, TheLargestByteIsFoundAnywhere) {
  for (const Level level : LevelsHere()) {
    const auto largest = KernelsOf(level).eight_bit.largest;
    EXPECT_EQ(largest(nullptr, 0, 0xff, 0x7f), 0);
    for (const std::size_t place : {0, 31, 32, 99}) {
      std::vector<std::byte> codes(100, std::byte{0x81});
      EXPECT_EQ(largest(codes.data(), codes.size(), 0xff, 0x7f), 0xfe);
      EXPECT_EQ(largest(codes.data(), codes.size(), 0x7f, 0), 1);
      codes[place] = std::byte{0x80};
      EXPECT_EQ(largest(codes.data(), codes.size(), 0xff, 0x7f), 0xff);
      codes[place] = std::byte{0xfd};
      EXPECT_EQ(largest(codes.data(), codes.size(), 0x7f, 0), 0x7d);
    }
  }
}

}  // namespace
}  // namespace eight_bit_test
}  // namespace leeway::compress
