// Tests of qsgd's own properties and of dithering; codecs_test.cc tests those of every codec,
// kernels/dither_test.cc levels and bits.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compress/common/descent.h"
#include "compress/registry.h"
#include "compress/testing/groups_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress::groups_testing {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kLargestFloat = std::numeric_limits<float>::max();

constexpr std::size_t kQsgdScales = 3;  // where they begin
// A decoder with other options: a message has all that decoding needs.
constexpr char kDecoder[] = "qsgd:bits=5,group=64";

TEST(Qsgd, AMessageOfUniformLevelsByHand) {
  // Levels are 0, 1, 2, 3: nothing is random. Codes 3, 6, 1, 0, 5, 2, 7, 3 and 1.
  const std::vector<float> values = {3, -2, 1, 0, -1, 2, -3, 3, 1};
  const auto encoded = Encode("qsgd:bits=3", values);
  ASSERT_EQ(encoded.size(), 1 + 2 + 4 + 4);
  EXPECT_EQ(encoded[0], 3);
  EXPECT_EQ(encoded[1], 512 / 8);
  EXPECT_EQ(encoded[2], 0);
  EXPECT_EQ(ScaleIn(encoded, kQsgdScales), 3);
  EXPECT_THAT(LastBytes(encoded, 4), ElementsAre(0x73, 0x50, 0x7d, 0x01));
  const std::vector<float> decoded = Decode(kDecoder, encoded, {.elements = 9});
  for (std::size_t i = 0; i < 9; ++i) EXPECT_FLOAT_EQ(decoded[i], values[i]);
}

TEST(Qsgd, AMessageOfNaturalLevelsByHand) {
  // Of 4 bits: 0 and 2^-6 to 1. Codes 7, 6, 13, 1, 0.
  const std::vector<float> values = {1, 0.5f, -0.25f, 0.015625f, 0};
  const auto encoded = Encode("qsgd:levels=natural", values);
  ASSERT_EQ(encoded.size(), 1 + 2 + 4 + 3);
  EXPECT_EQ(encoded[0], 4 + 128);
  EXPECT_THAT(LastBytes(encoded, 3), ElementsAre(0x67, 0x1d, 0));
  EXPECT_EQ(Decode(kDecoder, encoded, {.elements = 5}), values);
}

TEST(Qsgd, TheNormIsOneOfTwo) {
  const std::vector<float> values = {3, -4};
  EXPECT_EQ(ScaleIn(Encode("qsgd", values), kQsgdScales), 4);
  EXPECT_EQ(ScaleIn(Encode("qsgd:norm=max", values), kQsgdScales), 4);
  EXPECT_EQ(ScaleIn(Encode("qsgd:norm=l2", values), kQsgdScales), 5);
  // The norm is clamped to the largest float.
  const std::vector<float> largest(1000, kLargestFloat);
  const auto encoded = Encode("qsgd:norm=l2", largest);
  EXPECT_EQ(ScaleIn(encoded, kQsgdScales), kLargestFloat);
  EXPECT_EQ(Decode(kDecoder, encoded, {.elements = 1000}), largest);
}

TEST(Qsgd, GroupsAndRowsHaveNormsOfTheirOwn) {
  std::vector<float> values(70, 1);
  for (std::size_t i = 32; i < 64; ++i) values[i] = -300;
  for (std::size_t i = 64; i < 70; ++i) values[i] = 0;
  const auto encoded = Encode("qsgd:group=32", values);
  ASSERT_EQ(encoded.size(), 3 + 3 * 4 + 35);
  EXPECT_EQ(ScaleIn(encoded, kQsgdScales, 0), 1);
  EXPECT_EQ(ScaleIn(encoded, kQsgdScales, 1), 300);
  EXPECT_EQ(ScaleIn(encoded, kQsgdScales, 2), 0);
  EXPECT_EQ(Decode(kDecoder, encoded, {.elements = 70}), values);

  // Rows of three elements of 3 bits have two bytes each.
  const CodecShape rows = {.elements = 6, .columns = 3, .separate_rows = true};
  const std::vector<float> two = {1, -1, 1, 0, 50, -50};
  const auto in_rows = Encode("qsgd:bits=3", two, {.shape = rows});
  ASSERT_EQ(in_rows.size(), 3 + 2 * 4 + 4);
  EXPECT_THAT(LastBytes(in_rows, 4), ElementsAre(0b11111011, 0, 0b11011000, 1));
  EXPECT_EQ(Decode(kDecoder, in_rows, rows), two);
}

TEST(Qsgd, SizesAreAsDescribed) {
  EXPECT_EQ(Make("qsgd")->EncodedBytesMax({.elements = 131072}), 3 + 256 * 4 + 65536);
  EXPECT_EQ(Make("qsgd:bits=7,group=0")->EncodedBytesMax({.elements = 9}), 3 + 4 + 8);
  EXPECT_EQ(Make("qsgd")->EncodedBytesMax({.elements = 0}), 0);
}

TEST(Qsgd, EachStepDrawsAnew) {
  std::vector<float> values(100);
  for (std::size_t i = 0; i < 100; ++i) values[i] = static_cast<float>(runtime::NormalAt(1, 2, i));
  EXPECT_NE(Encode("qsgd", values, {.shape = {}, .seed = 1, .step = 2}),
            Encode("qsgd", values, {.shape = {}, .seed = 1, .step = 3}));
}

// (|v| − a)(b − |v|), between the levels a and b.
double Variance(double magnitude, double scale, int bits, bool natural) {
  const int levels = (1 << (bits - 1)) - 1;
  double below = 0;
  for (int level = 1; level <= levels; ++level) {
    const double above =
        scale * (natural ? std::ldexp(1.0, level - levels) : static_cast<double>(level) / levels);
    if (magnitude <= above) return (magnitude - below) * (above - magnitude);
    below = above;
  }
  return 0;
}

TEST(Qsgd, TheMeanOverManySeedsLiesWithinFourDeviations) {
  constexpr int kSeeds = 2000;
  constexpr std::size_t kSize = 90;
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(1, 2, i));
  }
  struct Case {
    const char* text;
    int bits;
    std::size_t group;
    bool natural;
  };
  for (const Case& c : {Case{"qsgd", 4, 512, false}, Case{"qsgd:bits=2,norm=l2", 2, 512, false},
                        Case{"qsgd:bits=8,norm=l2,group=32", 8, 32, false},
                        Case{"qsgd:levels=natural", 4, 512, true},
                        Case{"qsgd:levels=natural,bits=3,norm=l2,group=64", 3, 64, true}}) {
    SCOPED_TRACE(c.text);
    std::vector<double> sum(kSize);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      const auto encoded = Encode(c.text, values, {.shape = {}, .seed = seed});
      const auto decoded = Decode(kDecoder, encoded, {.elements = kSize});
      for (std::size_t i = 0; i < kSize; ++i) sum[i] += static_cast<double>(decoded[i]);
    }
    const auto encoded = Encode(c.text, values);
    for (std::size_t i = 0; i < kSize; ++i) {
      const double value = static_cast<double>(values[i]);
      const double scale = static_cast<double>(ScaleIn(encoded, kQsgdScales, i / c.group));
      const double variance = Variance(std::abs(value), scale, c.bits, c.natural);
      EXPECT_NEAR(sum[i] / kSeeds, value, 4 * std::sqrt(variance / kSeeds) + 1e-6) << i;
    }
  }
}

TEST(Qsgd, NaturalLevelsMeetSmallElementsBetter) {
  constexpr std::size_t kSize = 512;
  std::vector<float> values(kSize, 0.01f);
  values[0] = 1;
  const auto error = [&](const std::string& text) {
    const auto decoded = Decode(kDecoder, Encode(text, values), {.elements = kSize});
    double squares = 0;
    for (std::size_t i = 0; i < kSize; ++i) {
      squares += std::pow(static_cast<double>(decoded[i] - values[i]), 2);
    }
    return squares;
  };
  EXPECT_LT(error("qsgd:levels=natural"), 0.2 * error("qsgd"));
}

TEST(Qsgd, MalformedMessagesAreRefused) {
  const auto check = [](const std::vector<std::uint8_t>& encoded, const CodecShape& shape) {
    return Checked("qsgd", encoded, shape);
  };
  const CodecShape shape = {.elements = 64};
  const auto encoded = Encode("qsgd:group=32", std::vector<float>(64, 1));
  EXPECT_EQ(check(encoded, shape), "");
  for (const int form : {0, 1, 9, 16, 64, 129}) {
    auto damaged = encoded;
    damaged[0] = static_cast<std::uint8_t>(form);
    EXPECT_THAT(check(damaged, shape), HasSubstr("bits for an element")) << form;
  }
  auto damaged = encoded;
  damaged[0] = 5;
  EXPECT_THAT(check(damaged, shape), HasSubstr("64 elements of 5 bits in 2 groups"));
  for (const float scale :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    damaged = encoded;
    std::memcpy(damaged.data() + 7, &scale, sizeof(scale));
    EXPECT_THAT(check(damaged, shape), HasSubstr("scale"));
  }
  EXPECT_EQ(check({}, {.elements = 0}), "");
  EXPECT_THAT(check({4, 0, 0}, {.elements = 0}), HasSubstr("3 bytes for no elements"));
}

TEST(Qsgd, OptionsOutOfRangeAreRefused) {
  EXPECT_THAT(MakeCodec("qsgd:norm=l1").status().message(), HasSubstr("may be max or l2"));
  EXPECT_THAT(MakeCodec("qsgd:levels=0").status().message(),
              HasSubstr("may be uniform or natural"));
  EXPECT_THAT(MakeCodec("qsgd:level=natural").status().message(),
              HasSubstr("it has bits, group, norm, levels"));
  for (const char* const text : {"qsgd:bits=1", "qsgd:bits=9", "qsgd:bits=2.5", "qsgd:group=100"}) {
    EXPECT_EQ(MakeCodec(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Qsgd, DescentArrivesWithErrorFeedback) {
  for (const char* const text :
       {"qsgd", "qsgd:bits=3", "qsgd:levels=natural", "qsgd:bits=8,norm=l2"}) {
    EXPECT_LT(DistanceAfterDescent(*Make(text), Sent::kCompressedWithFeedback), 0.05) << text;
  }
  // The documented limit: too few levels of the Euclidean norm.
  EXPECT_GT(DistanceAfterDescent(*Make("qsgd:bits=2,norm=l2"), Sent::kCompressedWithFeedback), 10);
}

}  // namespace
}  // namespace leeway::compress::groups_testing
