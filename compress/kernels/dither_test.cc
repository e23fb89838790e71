#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace dither_test {
namespace {

constexpr std::size_t kDitherSizes[] = {0, 1, 7, 8, 9, 31, 33, 64, 1000};
constexpr float kLargestScale = std::numeric_limits<float>::max();
constexpr float kSmallestScale = std::numeric_limits<float>::denorm_min();

// Values of every size: many are near 0, some above 1.
std::vector<float> Spread(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(
        std::ldexp(runtime::NormalAt(7, size, i), -static_cast<int>(i % 20 * (i % 3))));
  }
  return values;
}

const LevelKernels& LevelsOf(Level level, bool natural) {
  const DitherKernels& kernels = KernelsOf(level).dither;
  return natural ? kernels.natural : kernels.uniform;
}

std::vector<std::uint8_t> Rounded(const LevelKernels& kernels, const std::vector<float>& values,
                                  float scale, int bits, std::uint64_t key = 9,
                                  std::uint32_t first = 100) {
  std::vector<std::uint8_t> codes(values.size());
  kernels.round(values.data(), values.size(), scale, bits, key, first, codes.data());
  return codes;
}

// The value of a code, by the formula.
double PartOf(int level, int bits, bool natural) {
  const int levels = (1 << (bits - 1)) - 1;
  if (level == 0) return 0;
  return natural ? std::ldexp(1.0, level - levels) : static_cast<double>(level) / levels;
}

TEST(DitherKernels, AllLevelsGiveTheSameBitsAtEveryLength) {
  for (const bool natural : {false, true}) {
    const LevelKernels& scalar = LevelsOf(Level::kScalar, natural);
    for (const std::size_t size : kDitherSizes) {
      for (int bits = 2; bits <= 8; ++bits) {
        const std::vector<float> values = Spread(size);
        const std::vector<std::uint8_t> codes = Rounded(scalar, values, 1.7f, bits);
        std::vector<float> restored(size), added = values;
        scalar.restore(codes.data(), size, 1.7f, bits, restored.data());
        scalar.add(codes.data(), size, 1.7f, bits, -1, added.data());
        std::vector<std::uint8_t> room((size + 7) / 8 * 8, 0xff);
        std::copy(codes.begin(), codes.end(), room.begin());
        std::vector<std::uint8_t> packed((size * static_cast<std::size_t>(bits) + 7) / 8, 0xff);
        KernelsOf(Level::kScalar).dither.pack(room.data(), size, bits, packed.data());
        for (const Level level : LevelsHere()) {
          SCOPED_TRACE(testing::Message() << Name(level) << ' ' << size << ' ' << bits);
          const LevelKernels& kernels = LevelsOf(level, natural);
          EXPECT_EQ(Rounded(kernels, values, 1.7f, bits), codes);
          std::vector<float> to(size);
          kernels.restore(codes.data(), size, 1.7f, bits, to.data());
          EXPECT_EQ(to, restored);
          to = values;
          kernels.add(codes.data(), size, 1.7f, bits, -1, to.data());
          EXPECT_EQ(to, added);
          std::vector<std::uint8_t> again(packed.size(), 0xaa);
          KernelsOf(level).dither.pack(room.data(), size, bits, again.data());
          EXPECT_EQ(again, packed);
          std::vector<std::uint8_t> apart(room.size());
          KernelsOf(level).dither.unpack(packed.data(), size, bits, apart.data());
          EXPECT_EQ(apart, room);
          EXPECT_EQ(KernelsOf(level).dither.sum_squares(values.data(), size),
                    KernelsOf(Level::kScalar).dither.sum_squares(values.data(), size));
        }
      }
    }
  }
}

TEST(DitherKernels, CodesLieOneBehindTheOther) {
  for (const std::size_t size : kDitherSizes) {
    for (int bits = 2; bits <= 8; ++bits) {
      std::vector<std::uint8_t> codes((size + 7) / 8 * 8, 0xff);
      std::vector<std::uint8_t> expected((size * static_cast<std::size_t>(bits) + 7) / 8);
      for (std::size_t i = 0; i < size; ++i) {
        const int code = static_cast<int>(runtime::RandomAt(1, 2, i)) & ((1 << bits) - 1);
        codes[i] = static_cast<std::uint8_t>(code);
        for (int b = 0; b < bits; ++b) {
          const std::size_t at = i * static_cast<std::size_t>(bits) + static_cast<std::size_t>(b);
          expected[at / 8] =
              static_cast<std::uint8_t>(expected[at / 8] | ((code >> b & 1) << (at % 8)));
        }
      }
      std::vector<std::uint8_t> packed(expected.size());
      KernelsOf(Level::kScalar).dither.pack(codes.data(), size, bits, packed.data());
      EXPECT_EQ(packed, expected) << size << ' ' << bits;
    }
  }
}

TEST(DitherKernels, CodesAreRestoredByTheFormula) {
  for (const bool natural : {false, true}) {
    for (int bits = 2; bits <= 8; ++bits) {
      const int sign = 1 << (bits - 1);
      std::vector<std::uint8_t> codes;
      for (int code = 0; code < 2 * sign; ++code) codes.push_back(static_cast<std::uint8_t>(code));
      for (const float scale : {0.0f, 1.0f, 0.37f, kSmallestScale, kLargestScale}) {
        std::vector<float> values(codes.size());
        LevelsOf(Level::kScalar, natural)
            .restore(codes.data(), codes.size(), scale, bits, values.data());
        for (std::size_t i = 0; i < codes.size(); ++i) {
          const int level = codes[i] & (sign - 1);
          const double exact = PartOf(level, bits, natural) * static_cast<double>(scale);
          const double magnitude = std::abs(static_cast<double>(values[i]));
          EXPECT_NEAR(magnitude, exact, 2e-7 * exact + static_cast<double>(kSmallestScale) / 2);
          EXPECT_EQ(std::signbit(values[i]), (codes[i] & sign) != 0);
          if (level == sign - 1) {
            EXPECT_EQ(std::abs(values[i]), scale);
          }
        }
      }
    }
  }
}

TEST(DitherKernels, EachElementGoesToOneOfTheLevelsAroundIt) {
  for (const bool natural : {false, true}) {
    for (int bits = 2; bits <= 8; ++bits) {
      const std::vector<float> values = Spread(1000);
      const auto codes = Rounded(LevelsOf(Level::kScalar, natural), values, 1.7f, bits);
      const int levels = (1 << (bits - 1)) - 1;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double part =
            std::min(1.0, static_cast<double>(std::abs(values[i])) / static_cast<double>(1.7f));
        int below = 0;
        while (below < levels && PartOf(below + 1, bits, natural) <= part * (1 + 1e-6)) ++below;
        const int above = PartOf(below, bits, natural) >= part * (1 - 1e-6) ? below : below + 1;
        const int level = codes[i] & levels;
        EXPECT_TRUE(level == below || level == above || (above == below && level == below - 1))
            << values[i] << " to " << level << " of " << bits << " bits";
        EXPECT_EQ(codes[i] > levels, level != 0 && values[i] < 0);
      }
    }
  }
}

// The mean over many keys lies within four deviations of the element, for elements at several
// places between levels, and below the lowest.
TEST(DitherKernels, TheMeanIsTheElement) {
  constexpr int kKeys = 20000;
  const std::vector<float> values = {0.9f, -0.77f, 0.5f, 0.3f, -0.15f, 0.02f, 0.001f, 1.0f, 0.0f};
  for (const bool natural : {false, true}) {
    for (const int bits : {2, 3, 4, 8}) {
      const LevelKernels& kernels = LevelsOf(LevelsHere().back(), natural);
      std::vector<double> sum(values.size()), squares(values.size());
      std::vector<float> restored(values.size());
      for (std::uint64_t n = 0; n < kKeys; ++n) {
        const auto codes = Rounded(kernels, values, 1, bits, runtime::RandomAt(4, 0, n), 0);
        kernels.restore(codes.data(), codes.size(), 1, bits, restored.data());
        for (std::size_t i = 0; i < values.size(); ++i) {
          sum[i] += static_cast<double>(restored[i]);
          squares[i] += static_cast<double>(restored[i]) * static_cast<double>(restored[i]);
        }
      }
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double mean = sum[i] / kKeys;
        const double variance = std::max(0.0, squares[i] / kKeys - mean * mean);
        EXPECT_NEAR(mean, static_cast<double>(values[i]), 4 * std::sqrt(variance / kKeys) + 1e-7)
            << bits << " bits, natural " << natural;
      }
    }
  }
}

// Neighbouring elements, and the same element under neighbouring keys, are drawn independently.
TEST(DitherKernels, DrawsAreNotCorrelated) {
  constexpr std::size_t kSize = 20000;
  const std::vector<float> values(kSize, 0.5f);
  const LevelKernels& kernels = LevelsOf(LevelsHere().back(), false);
  const auto rounded = [&](std::uint64_t key, std::uint32_t first) {
    return Rounded(kernels, values, 1, 2, key, first);
  };
  const auto agreeing = [](const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b,
                           std::size_t shift) {
    double count = 0;
    for (std::size_t i = 0; i + shift < kSize; ++i) count += a[i] == b[i + shift] ? 1 : 0;
    return count / static_cast<double>(kSize - shift);
  };
  const auto codes = rounded(12345, 0);
  for (const std::size_t shift : {1, 2, 8, 4096}) {
    EXPECT_NEAR(agreeing(codes, codes, shift), 0.5, 0.018) << shift;
  }
  for (int bit = 0; bit < 64; bit += 3) {
    EXPECT_NEAR(agreeing(codes, rounded(12345 ^ std::uint64_t{1} << bit, 0), 0), 0.5, 0.018) << bit;
  }
  // The number of an element counts, not the beginning of the call.
  const auto later = rounded(12345, 7);
  EXPECT_TRUE(std::equal(codes.begin() + 7, codes.end(), later.begin()));
}

TEST(DitherKernels, ExtremeScales) {
  for (const bool natural : {false, true}) {
    for (const Level level : LevelsHere()) {
      for (const int bits : {2, 4, 8}) {
        const LevelKernels& kernels = LevelsOf(level, natural);
        const auto highest = static_cast<std::uint8_t>((1 << (bits - 1)) - 1);
        for (const float scale : {kSmallestScale, 1e-30f, 1.0f, kLargestScale}) {
          EXPECT_THAT(Rounded(kernels, std::vector<float>(40, scale), scale, bits),
                      testing::Each(highest));
          EXPECT_THAT(Rounded(kernels, std::vector<float>(40, -scale), scale, bits),
                      testing::Each(2 * highest + 1));
        }
        EXPECT_THAT(Rounded(kernels, std::vector<float>(40, kLargestScale), kSmallestScale, bits),
                    testing::Each(highest));
        EXPECT_THAT(Rounded(kernels, std::vector<float>(40, -0.0f), 0, bits), testing::Each(0));
      }
    }
  }
}

TEST(DitherKernels, SumsOfSquaresNeitherOverflowNorVanish) {
  for (const Level level : LevelsHere()) {
    const DitherKernels& kernels = KernelsOf(level).dither;
    const double largest = kLargestScale, smallest = kSmallestScale;
    EXPECT_EQ(kernels.sum_squares(std::vector<float>(64, kLargestScale).data(), 64),
              64 * largest * largest);
    EXPECT_EQ(kernels.sum_squares(std::vector<float>(33, kSmallestScale).data(), 33),
              33 * smallest * smallest);
    const std::vector<float> values = {3, -4};
    EXPECT_EQ(kernels.sum_squares(values.data(), 2), 25);
  }
}

}  // namespace
}  // namespace dither_test
}  // namespace leeway::compress
