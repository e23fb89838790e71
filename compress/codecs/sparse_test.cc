#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace sparse_test {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

std::shared_ptr<const Codec> SparseCodec() {
  const auto made = MakeCodec("sparse");
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->codec : nullptr;
}

std::vector<std::byte> SparseEncoded(const void* values, const CodecShape& shape) {
  const auto codec = SparseCodec();
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  const auto bytes = codec->Encode(values, {.shape = shape}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LE(bytes.value_or(0), out.size());
  out.resize(bytes.value_or(0));
  return out;
}

std::vector<int> SparseNumbers(const std::vector<std::byte>& bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(static_cast<int>(byte));
  return numbers;
}

std::vector<std::byte> SparseMessage(const std::vector<int>& numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

TEST(SparseCodec, TheThreeFormsAreAsDescribed) {
  CodecShape shape{.dtype = DType::kFloat16, .elements = 3};
  const std::uint16_t dense[] = {1, 0x203, 0x8000};
  EXPECT_THAT(SparseNumbers(SparseEncoded(dense, shape)),
              ElementsAreArray({0, 1, 0, 3, 2, 0, 0x80}));

  shape.elements = 10;
  const std::uint16_t some[10] = {0, 0x102, 0, 0, 0x304, 0, 0, 0, 0, 0x506};
  EXPECT_THAT(SparseNumbers(SparseEncoded(some, shape)),
              ElementsAreArray({1, 0x12, 0x02, 2, 1, 4, 3, 6, 5}));

  shape.elements = 1000;
  std::vector<std::uint16_t> few(1000);
  few[5] = 0x102, few[6] = 0x304, few[306] = 0x506;  // 299 = 2 · 128 + 43 are skipped
  EXPECT_THAT(SparseNumbers(SparseEncoded(few.data(), shape)),
              ElementsAreArray({2, 3, 5, 0, 0xab, 2, 2, 1, 4, 3, 6, 5}));

  few.assign(1000, 0);
  EXPECT_THAT(SparseNumbers(SparseEncoded(few.data(), shape)), ElementsAreArray({2, 0}));
}

TEST(SparseCodec, EveryTypeComesBackBitByBitAtEveryDensity) {
  const auto codec = SparseCodec();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,
                            DType::kInt32, DType::kInt64}) {
    ASSERT_TRUE(codec->Supports(dtype));
    const std::size_t width = SizeOf(dtype);
    for (const std::size_t elements : {0, 1, 2, 7, 8, 9, 63, 64, 65, 1000, 40000}) {
      for (const std::uint64_t every : {1, 2, 5, 8, 50, 1000, 1 << 20}) {
        const CodecShape shape{.dtype = dtype, .elements = elements};
        std::vector<std::byte> values(elements * width);
        for (std::size_t i = 0; i < elements; ++i) {
          // Any bits: also negative zeros, NaNs, subnormal numbers and small integers.
          const std::uint64_t random = runtime::RandomAt(1, every, i);
          if (random % every != 0) continue;
          const std::uint64_t bits = runtime::RandomAt(2, 3, i) >> (random >> 60);
          std::memcpy(values.data() + i * width, &bits, width);
        }
        const std::vector<std::byte> encoded = SparseEncoded(values.data(), shape);
        ASSERT_TRUE(codec->Check(encoded, shape).ok());
        std::vector<std::byte> decoded(values.size(), std::byte{7});
        ASSERT_TRUE(codec->Decode(encoded, shape, decoded.data()).ok());
        ASSERT_EQ(decoded, values) << Name(dtype) << ' ' << elements << ' ' << every;
        if (elements == 40000 && every >= 50) {
          EXPECT_LT(encoded.size(), 1 + (width + 2) * elements * 12 / (every * 10) + 20);
        }
      }
    }
  }
}

TEST(SparseCodec, NegativeZeroAndNanPayloadsAreValues) {
  std::vector<std::uint32_t> bits(100);
  bits[3] = 0x80000000;   // −0.0
  bits[50] = 0x7f800001;  // a signalling NaN
  bits[51] = 0xffc12345;
  bits[99] = 0x7f800000;
  const CodecShape shape{.elements = 100};
  const std::vector<std::byte> encoded = SparseEncoded(bits.data(), shape);
  EXPECT_EQ(encoded.size(), 1 + 1 + 4 + 16);
  std::vector<std::uint32_t> decoded(100, 7);
  ASSERT_TRUE(SparseCodec()->Decode(encoded, shape, decoded.data()).ok());
  EXPECT_EQ(decoded, bits);
}

TEST(SparseCodec, DecodeAddIsTheSumAndTouchesOnlyWhatIsThere) {
  const auto codec = SparseCodec();
  for (const std::size_t every : {1, 3, 100}) {
    std::vector<float> values(1000), sum(1000), expected;
    for (std::size_t i = 0; i < values.size(); ++i) {
      sum[i] = static_cast<float>(runtime::NormalAt(1, 2, i));
      if (i % every == 0) values[i] = static_cast<float>(runtime::NormalAt(3, 4, i));
    }
    if (every > 1) sum[1] = std::bit_cast<float>(0x7f800001);  // adding 0 would make it quiet
    if (every > 1) sum[2] = -0.0f;
    expected = sum;
    for (std::size_t i = 0; i < values.size(); i += every) expected[i] += -1 * values[i];
    const CodecShape shape{.elements = values.size()};
    const std::vector<std::byte> encoded = SparseEncoded(values.data(), shape);
    EXPECT_EQ(static_cast<std::size_t>(encoded[0]), every == 1 ? 0 : every == 3 ? 1 : 2);
    ASSERT_TRUE(codec->DecodeAdd(encoded, shape, -1, sum.data()).ok());
    EXPECT_EQ(std::memcmp(sum.data(), expected.data(), sum.size() * sizeof(float)), 0) << every;
  }
}

TEST(SparseCodec, NothingRemainsForErrorFeedback) {
  std::vector<float> carried = {1, 0, std::numeric_limits<float>::infinity(), NAN, 5};
  const CodecShape shape{.elements = carried.size()};
  const auto codec = SparseCodec();
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  ASSERT_TRUE(codec->EncodeAndSubtract(carried.data(), {.shape = shape}, out).ok());
  EXPECT_THAT(carried, testing::Each(0.0f));
}

TEST(SparseCodec, MalformedBytesAreRefused) {
  const auto codec = SparseCodec();
  const CodecShape shape{.dtype = DType::kInt32, .elements = 10};
  const auto error = [&](const std::vector<int>& numbers, const CodecShape& of) {
    const std::vector<std::byte> message = SparseMessage(numbers);
    const absl::Status checked = codec->Check(message, of);
    std::vector<std::byte> values(of.elements * SizeOf(of.dtype));
    EXPECT_EQ(codec->Decode(message, of, values.data()), checked);
    return std::string(checked.message());
  };
  EXPECT_THAT(error({}, shape), HasSubstr("no known form"));
  EXPECT_THAT(error({3, 0}, shape), HasSubstr("no known form"));
  EXPECT_THAT(error({0, 1, 0, 0, 0}, shape), HasSubstr("5 bytes do not fit 10 values"));
  // bitmap
  EXPECT_EQ(error({1, 0, 2, 1, 0, 0, 0}, shape), "");
  EXPECT_THAT(error({1, 0}, shape), HasSubstr("2 bytes hold no bitmap"));
  EXPECT_THAT(error({1, 0, 4, 1, 0, 0, 0}, shape), HasSubstr("goes beyond 10 elements"));
  EXPECT_THAT(error({1, 1, 2, 1, 0, 0, 0}, shape), HasSubstr("do not fit 2 values"));
  EXPECT_THAT(error({1, 0, 0, 1, 0, 0, 0}, shape), HasSubstr("do not fit 0 values"));
  // indices
  EXPECT_EQ(error({2, 2, 0, 8, 1, 0, 0, 0, 1, 0, 0, 0}, shape), "");
  EXPECT_THAT(error({2, 2, 0, 9, 1, 0, 0, 0, 1, 0, 0, 0}, shape),
              HasSubstr("an index is beyond 10 elements"));
  EXPECT_THAT(error({2, 1, 10, 1, 0, 0, 0}, shape), HasSubstr("an index is beyond 10 elements"));
  EXPECT_THAT(error({2}, shape), HasSubstr("do not hold its values"));
  EXPECT_THAT(error({2, 11, 0}, shape), HasSubstr("do not hold its values"));
  EXPECT_THAT(error({2, 2, 0, 1, 0, 0, 0}, shape), HasSubstr("do not hold its values"));
  EXPECT_THAT(error({2, 1, 0, 0, 1, 0, 0, 0}, shape), HasSubstr("1 bytes too many"));
  EXPECT_THAT(error({2, 1, 0x80, 1, 0, 0, 0}, shape), HasSubstr("a distance is cut off"));
  EXPECT_THAT(error({2, 0, 0}, {.elements = 0}), HasSubstr("1 bytes too many"));
  // A distance of 2^64 − 1 leads to no index before its start; more is no number.
  const std::vector<int> nines(9, 0xff);
  for (const int last : {1, 2}) {
    std::vector<int> far = {2, 2, 0};
    far.insert(far.end(), nines.begin(), nines.end());
    far.insert(far.end(), {last, 1, 0, 0, 0, 1, 0, 0, 0});
    EXPECT_THAT(error(far, shape),
                HasSubstr(last == 1 ? "an index is beyond" : "a distance is cut off"));
  }
}

}  // namespace
}  // namespace sparse_test
}  // namespace leeway::compress
