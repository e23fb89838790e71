// Tests of the properties of every codec: one suite over all of them, at difficult lengths and
// values.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compress/kernels/kernels.h"
#include "compress/registry.h"
#include "compress/testing/codec_samples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"
#include "runtime/memory/sanitized.h"

namespace leeway::compress {
namespace codecs_test {
namespace {

constexpr std::size_t kLengths[] = {0, 1, 2, 7, 31, 32, 33, 255, 1000, 4097};

std::vector<float> Normal(std::size_t size, std::uint64_t seed = 1) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(seed, size, i));
  }
  return values;
}

CodecShape ShapeOf(std::size_t elements, std::size_t columns = 10, bool separate_rows = false) {
  return {.elements = elements, .columns = columns, .separate_rows = separate_rows};
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

class CodecTest : public testing::TestWithParam<CodecSample> {
 protected:
  void SetUp() override {
    const auto made = MakeCodec(GetParam().text);
    ASSERT_TRUE(made.ok()) << made.status();
    codec_ = made->codec;
    EXPECT_EQ(codec_->keeps_residual(), GetParam().keeps_its_own);
  }
  void TearDown() override { ChooseLevel(LevelsHere().back()); }

  // The bytes lie in memory of exactly their size, at any alignment, so that a sanitizer sees a
  // read beyond them.
  struct Encoded {
    std::unique_ptr<std::byte[]> memory;
    std::span<const std::byte> bytes;
  };
  static Encoded Copied(std::span<const std::byte> bytes, std::size_t offset = 1) {
    Encoded encoded{std::make_unique<std::byte[]>(bytes.size() + offset), {}};
    if (!bytes.empty()) std::memcpy(encoded.memory.get() + offset, bytes.data(), bytes.size());
    encoded.bytes = {encoded.memory.get() + offset, bytes.size()};
    return encoded;
  }

  absl::StatusOr<Encoded> Encode(const std::vector<float>& values, const CodecShape& shape,
                                 std::uint64_t seed = 5) const {
    std::vector<float> state(codec_->StateElements(shape));
    return EncodeWith(values, {.shape = shape, .seed = seed, .step = 0, .state = state});
  }
  absl::StatusOr<Encoded> EncodeWith(const std::vector<float>& values,
                                     const EncodeTerms& terms) const {
    const std::size_t max = codec_->EncodedBytesMax(terms.shape);
    const auto out = std::make_unique<std::byte[]>(max + 1);
    const auto bytes = codec_->Encode(values.data(), terms, {out.get() + 1, max});
    if (!bytes.ok()) return bytes.status();
    EXPECT_LE(*bytes, max);
    return Copied({out.get() + 1, *bytes});
  }

  std::vector<float> Decode(std::span<const std::byte> encoded, const CodecShape& shape) const {
    std::vector<float> values(shape.elements, 7.0f);
    const absl::Status decoded = codec_->Decode(encoded, shape, values.data());
    EXPECT_TRUE(decoded.ok()) << decoded;
    return values;
  }

  bool CarriesRows() const { return codec_->StateElements(ShapeOf(40)) == 0; }

  std::shared_ptr<const Codec> codec_;
};

TEST_P(CodecTest, AllCallsAgreeAtEveryLength) {
  for (const std::size_t size : kLengths) {
    SCOPED_TRACE(size);
    for (const bool separate : {false, true}) {
      if (separate && (size % 10 != 0 || !CarriesRows())) continue;
      const CodecShape shape = ShapeOf(size, 10, separate);
      const std::vector<float> values = Normal(size);
      const auto encoded = Encode(values, shape);
      ASSERT_TRUE(encoded.ok()) << encoded.status();
      EXPECT_TRUE(codec_->Check(encoded->bytes, shape).ok());
      const std::vector<float> decoded = Decode(encoded->bytes, shape);
      if (codec_->lossless()) {
        EXPECT_TRUE(SameBits(decoded, values));
      }

      std::vector<float> sum = Normal(size, 2), expected = sum;
      ASSERT_TRUE(codec_->DecodeAdd(encoded->bytes, shape, 1, sum.data()).ok());
      for (std::size_t i = 0; i < size; ++i) expected[i] += decoded[i];
      EXPECT_TRUE(SameBits(sum, expected));

      std::vector<float> carried = values, state(codec_->StateElements(shape));
      std::vector<std::byte> out(codec_->EncodedBytesMax(shape));
      const auto bytes = codec_->EncodeAndSubtract(
          carried.data(), {.shape = shape, .seed = 5, .step = 0, .state = state}, out);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      EXPECT_TRUE(std::ranges::equal(std::span(out).first(*bytes), encoded->bytes));
      for (std::size_t i = 0; i < size; ++i) {
        expected[i] = GetParam().keeps_its_own ? 0 : values[i] + -1.0f * decoded[i];
      }
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(carried[i], expected[i]) << i;
    }
  }
}

TEST_P(CodecTest, AllLevelsGiveTheSameBits) {
  for (const std::size_t size : {1, 33, 1000, 4097}) {
    const CodecShape shape = ShapeOf(size);
    const std::vector<float> values = Normal(size, 3);
    ChooseLevel(Level::kScalar);
    const auto scalar = Encode(values, shape);
    ASSERT_TRUE(scalar.ok()) << scalar.status();
    const std::vector<float> decoded = Decode(scalar->bytes, shape);
    for (const Level level : LevelsHere()) {
      ChooseLevel(level);
      const auto encoded = Encode(values, shape);
      ASSERT_TRUE(encoded.ok());
      EXPECT_TRUE(std::ranges::equal(encoded->bytes, scalar->bytes)) << Name(level) << ' ' << size;
      EXPECT_TRUE(SameBits(Decode(scalar->bytes, shape), decoded)) << Name(level) << ' ' << size;
    }
  }
}

TEST_P(CodecTest, HardValuesGiveFiniteOnes) {
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const std::size_t size : {1, 33, 1000}) {
    const CodecShape shape = ShapeOf(size);
    for (const float value : {0.0f, -0.0f, kDenormal, -17 * kDenormal, 1.0f, -2.5f, 1e-30f, 1e30f,
                              kLargest, -kLargest}) {
      const std::vector<float> values(size, value);
      const auto encoded = Encode(values, shape);
      ASSERT_TRUE(encoded.ok()) << encoded.status();
      const std::vector<float> decoded = Decode(encoded->bytes, shape);
      for (const float one : decoded) ASSERT_TRUE(std::isfinite(one)) << value << " gave " << one;
      if (value == 0) {
        for (const float one : decoded) ASSERT_EQ(one, 0) << value;
      }
    }
  }
}

TEST_P(CodecTest, NanAndInfinityDoNotSpread) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const std::size_t place : {0, 40, 99}) {
      const CodecShape shape = ShapeOf(100);
      std::vector<float> values = Normal(100, 4);
      values[place] = bad;
      std::vector<float> carried = values;
      const auto encoded = Encode(values, shape);
      const bool refused = GetParam().non_finite == OnNonFinite::kRefused ||
                           (GetParam().non_finite == OnNonFinite::kNanRefused && std::isnan(bad));
      ASSERT_EQ(encoded.ok(), !refused) << encoded.status();
      if (refused) {
        EXPECT_EQ(encoded.status().code(), absl::StatusCode::kInvalidArgument);
        std::vector<float> state(codec_->StateElements(shape));
        std::vector<std::byte> out(codec_->EncodedBytesMax(shape));
        EXPECT_FALSE(codec_
                         ->EncodeAndSubtract(carried.data(),
                                             {.shape = shape, .seed = 5, .step = 0, .state = state},
                                             out)
                         .ok());
        EXPECT_TRUE(SameBits(carried, values));
        for (const float one : state) EXPECT_EQ(one, 0);
        EXPECT_FALSE(codec_->may_give_non_finite() && !codec_->lossless() &&
                     GetParam().non_finite == OnNonFinite::kRefused);
        continue;
      }
      const std::vector<float> decoded = Decode(encoded->bytes, shape);
      for (std::size_t i = 0; i < decoded.size(); ++i) {
        ASSERT_TRUE(i == place || std::isfinite(decoded[i])) << i;
      }
      if (GetParam().non_finite == OnNonFinite::kPassed) {
        EXPECT_EQ(std::isnan(decoded[place]), std::isnan(bad));
        EXPECT_TRUE(std::isnan(bad) || decoded[place] == bad);
      } else {
        EXPECT_TRUE(std::isfinite(decoded[place]));
      }
    }
  }
}

// A sanitizer sees accesses beyond the memory. Check and Decode agree on each message.
TEST_P(CodecTest, DamagedMessagesAreDecodedOrRefused) {
  runtime::Random random(11);
  for (const std::size_t size : {0, 1, 33, 500}) {
    const CodecShape shape = ShapeOf(size);
    const auto encoded = Encode(Normal(size), shape);
    ASSERT_TRUE(encoded.ok());
    std::vector<float> values(size);
    const auto try_this = [&](std::span<const std::byte> bytes) {
      const Encoded damaged = Copied(bytes, 0);
      const bool decoded = codec_->Decode(damaged.bytes, shape, values.data()).ok();
      EXPECT_EQ(codec_->Check(damaged.bytes, shape).ok(), decoded);
      if (!decoded) return;
      EXPECT_TRUE(codec_->DecodeAdd(damaged.bytes, shape, 1, values.data()).ok());
    };
    const std::size_t step = std::max<std::size_t>(1, encoded->bytes.size() / 300);
    for (std::size_t i = 0; i < encoded->bytes.size(); i += step) try_this(encoded->bytes.first(i));
    std::vector<std::byte> bytes(encoded->bytes.begin(), encoded->bytes.end());
    for (int i = 0; i < 1000 && !bytes.empty(); ++i) {
      std::vector<std::byte> damaged = bytes;
      for (std::uint64_t n = 1 + random.Below(4); n > 0; --n) {
        // The front of a message decides the rest, so it is damaged most often.
        const std::uint64_t reach =
            random.Below(2) == 0 ? std::min<std::size_t>(16, bytes.size()) : bytes.size();
        damaged[random.Below(reach)] = static_cast<std::byte>(random.Next());
      }
      try_this(damaged);
    }
    bytes.push_back(std::byte{1});
    try_this(bytes);
    try_this({});
  }
}

TEST_P(CodecTest, AnEmptyOrLongerMessageIsRefused) {
  const CodecShape shape = ShapeOf(100);
  const auto encoded = Encode(Normal(100), shape);
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(codec_->Check({}, shape).code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::byte> longer(encoded->bytes.begin(), encoded->bytes.end());
  longer.push_back(std::byte{0});
  EXPECT_EQ(codec_->Check(longer, shape).code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(CodecTest, SeparateRowsHaveNothingToDoWithEachOther) {
  if (!CarriesRows()) return;
  const CodecShape shape = ShapeOf(30, 10, /*separate_rows=*/true);
  std::vector<float> values = Normal(30);
  const auto before = Encode(values, shape);
  ASSERT_TRUE(before.ok());
  const std::vector<float> decoded = Decode(before->bytes, shape);
  for (std::size_t i = 10; i < 20; ++i) values[i] *= 1e6f;
  const auto after = Encode(values, shape);
  ASSERT_TRUE(after.ok());
  const std::vector<float> again = Decode(after->bytes, shape);
  for (const std::size_t row : {0, 2}) {
    for (std::size_t i = row * 10; i < row * 10 + 10; ++i) EXPECT_EQ(again[i], decoded[i]) << i;
  }
}

TEST_P(CodecTest, TheSeedDecidesWhatIsRandom) {
  const CodecShape shape = ShapeOf(1000);
  const std::vector<float> values = Normal(1000);
  const auto once = Encode(values, shape, 8), again = Encode(values, shape, 8);
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_TRUE(std::ranges::equal(once->bytes, again->bytes));
  const auto other = Encode(values, shape, 9);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(!std::ranges::equal(once->bytes, other->bytes), GetParam().random);
}

// The decoded values and the residual add up to the input, whatever the codec drops.
TEST_P(CodecTest, NothingIsLostUnderErrorFeedback) {
  const CodecShape shape = ShapeOf(200);
  std::vector<float> carried(200), state(codec_->StateElements(shape));
  std::vector<double> given(200), sent(200);
  std::vector<std::byte> out(codec_->EncodedBytesMax(shape));
  for (std::uint64_t step = 0; step < 50; ++step) {
    const std::vector<float> gradient = Normal(200, 100 + step);
    for (std::size_t i = 0; i < 200; ++i) {
      carried[i] += gradient[i];
      given[i] += static_cast<double>(gradient[i]);
    }
    const auto bytes = codec_->EncodeAndSubtract(
        carried.data(), {.shape = shape, .seed = step, .step = step, .state = state}, out);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const std::vector<float> decoded = Decode(std::span(out).first(*bytes), shape);
    for (std::size_t i = 0; i < 200; ++i) sent[i] += static_cast<double>(decoded[i]);
  }
  if (GetParam().keeps_its_own) return;  // it carries part of it in its state
  double largest = 1;
  for (std::size_t i = 0; i < 200; ++i) largest = std::max(largest, std::abs(sent[i]));
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_NEAR(sent[i] + static_cast<double>(carried[i]), given[i], 1e-4 * largest) << i;
  }
}

TEST_P(CodecTest, LargeTensorsAreCarried) {
  constexpr std::size_t kSize = runtime::kSanitized ? 1'000'001 : 10'000'001;
  const CodecShape shape = ShapeOf(kSize, 1000);
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 2654435761u % 2001) - 1000);
  }
  const auto encoded = Encode(values, shape);
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  const std::vector<float> decoded = Decode(encoded->bytes, shape);
  EXPECT_TRUE(!codec_->lossless() || SameBits(decoded, values));
}

INSTANTIATE_TEST_SUITE_P(All, CodecTest, testing::ValuesIn(CodecSamples()),
                         [](const testing::TestParamInfo<CodecSample>& sample) {
                           std::string name = sample.param.text;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

// A codec without a sample fails this test.
TEST(CodecSamples, CoverEveryBuiltinCodec) {
  std::vector<std::string> sampled;
  for (const CodecSample& sample : CodecSamples()) {
    sampled.push_back(sample.text.substr(0, sample.text.find(':')));
  }
  for (const auto& [name, factory] : BuiltinCodecs()) {
    EXPECT_THAT(sampled, testing::Contains(name));
  }
}

}  // namespace
}  // namespace codecs_test
}  // namespace leeway::compress
