#include "runtime/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <set>

namespace leeway::runtime {
namespace {

// The values of xoshiro256** seeded through SplitMix64 that other implementations publish.
TEST(RandomTest, MatchesTheReferenceImplementation) {
  const std::map<std::uint64_t, std::array<std::uint64_t, 3>> expected = {
      {0, {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0}},
      {1, {0xb3f2af6d0fc710c5, 0x853b559647364cea, 0x92f89756082a4514}},
      {42, {0x15780b2e0c2ec716, 0x6104d9866d113a7e, 0xae17533239e499a1}},
  };
  for (const auto& [seed, numbers] : expected) {
    Random random(seed);
    for (const std::uint64_t number : numbers) EXPECT_EQ(random.Next(), number) << "seed " << seed;
  }
}

// Initial values of tables and simulations follow from these numbers, so they may never change.
TEST(RandomTest, NumbersByPlaceStayWhatTheyAre) {
  EXPECT_EQ(RandomAt(0, 0, 0), 0x238275bc38fcbe91u);
  EXPECT_EQ(RandomAt(1, 2, 3), 0xd0734750fde362b3u);
  EXPECT_EQ(StableHash(std::uint64_t{0}),
            0xe220a8397b1dcdafu);  // SplitMix64(0), published elsewhere
  EXPECT_EQ(StableHash(std::uint64_t{12345}), 0x22118258a9d111a0u);
  EXPECT_EQ(StableHash(""), 0xf52a15e9a9b5e89bu);
  EXPECT_EQ(StableHash("weights"), 0xfc08f97ccd3959b5u);
  EXPECT_EQ(NormalAt(1, 2, 3), 0x1.a6e93f33b1d0ep+0);
}

TEST(RandomTest, NumbersByPlaceDifferInEveryCoordinate) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    for (std::uint64_t stream = 0; stream < 16; ++stream) {
      for (std::uint64_t index = 0; index < 16; ++index) seen.insert(RandomAt(seed, stream, index));
    }
  }
  EXPECT_EQ(seen.size(), 16u * 16 * 16);
}

TEST(RandomTest, UniformFillsItsInterval) {
  Random random(7);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    ASSERT_LT(UniformAt(1, 2, i), 1);
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.005);
}

TEST(RandomTest, BelowIsUnbiased) {
  Random random(7);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60'000; ++i) ++counts[random.Below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  // Three quarters of 2^64: without rejection, results in the lower third would be twice as likely.
  const std::uint64_t bound = std::uint64_t{3} << 62;
  int low = 0;
  for (int i = 0; i < 30'000; ++i) low += random.Below(bound) < (std::uint64_t{1} << 62);
  EXPECT_NEAR(low, 10'000, 500);
  EXPECT_EQ(random.Below(1), 0u);
}

void ExpectStandardNormal(double (*draw)(void*, int), void* source) {
  constexpr int kDraws = 200'000;
  double sum = 0, squares = 0, fourths = 0;
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = draw(source, i);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    beyond_two += std::fabs(x) > 2;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.01);
  EXPECT_NEAR(squares / kDraws, 1, 0.01);
  EXPECT_NEAR(fourths / kDraws, 3, 0.1);
  EXPECT_NEAR(static_cast<double>(beyond_two) / kDraws, 0.0455, 0.002);
}

TEST(RandomTest, NormalIsNormal) {
  Random random(3);
  ExpectStandardNormal([](void* r, int) { return static_cast<Random*>(r)->Normal(); }, &random);
  ExpectStandardNormal([](void*, int i) { return NormalAt(1, 2, i); }, nullptr);
}

// Compares with Box–Muller from the same two draws and the standard library's functions.
TEST(RandomTest, NormalAgreesWithTheLibrarysLogAndCosine) {
  Random ours(11);
  Random draws(11);
  for (int i = 0; i < 100'000; ++i) {
    const double u = 1 - draws.Uniform();
    const double v = draws.Uniform();
    const double expected = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    ASSERT_NEAR(ours.Normal(), expected, 1e-14);
  }
}

TEST(RandomTest, HashesSpreadOverSmallModuli) {
  std::array<int, 7> counts{};
  for (std::uint64_t key = 0; key < 70'000; ++key) ++counts[StableHash(key) % 7];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 500);
  EXPECT_NE(StableHash("ab"), StableHash("ba"));
}

}  // namespace
}  // namespace leeway::runtime
