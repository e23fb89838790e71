#include <cmath>
#include <memory>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace topk_test {
namespace {

std::shared_ptr<const Codec> Make(const char* text) {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made->codec;
}

std::vector<std::byte> Encode(const Codec& codec, const std::vector<float>& values,
                              const CodecShape& shape) {
  std::vector<std::byte> out(codec.EncodedBytesMax(shape));
  const auto bytes = codec.Encode(values.data(), {.shape = shape}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  out.resize(*bytes);
  return out;
}

std::vector<float> Carried(const char* text, const std::vector<float>& values,
                           const CodecShape& shape) {
  const auto codec = Make(text);
  std::vector<float> decoded(values.size());
  EXPECT_TRUE(codec->Decode(Encode(*codec, values, shape), shape, decoded.data()).ok());
  return decoded;
}

TEST(TopK, SendsTheLargestAndOfEqualOnesTheFirst) {
  const std::vector<float> values = {0, 3, -7, 3, -3, 0.5f, 7, 3, 0, 0};
  const CodecShape shape = {.elements = 10};
  EXPECT_THAT(Carried("topk:0.1", values, shape),
              testing::ElementsAre(0, 0, -7, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(Carried("topk:0.31", values, shape),
              testing::ElementsAre(0, 3, -7, 3, 0, 0, 7, 0, 0, 0));
  EXPECT_THAT(Carried("topk", values, shape), testing::ElementsAre(0, 0, -7, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(Carried("topk:1", values, shape), values);
}

TEST(TopK, EachSeparateRowHasItsOwn) {
  const std::vector<float> values = {1, 2, 3, 4, 0.1f, -0.4f, 0.3f, 0.2f, 9, 9, 9, 9};
  EXPECT_THAT(Carried("topk:0.5", values, {.elements = 12, .columns = 4, .separate_rows = true}),
              testing::ElementsAre(0, 0, 3, 4, 0, -0.4f, 0.3f, 0, 9, 9, 0, 0));
}

// 1 % of normally distributed values: 5.07 bytes for each sent value.
TEST(TopK, IsAsShortAsItSays) {
  const CodecShape shape = {.elements = 131'072};
  std::vector<float> values(shape.elements);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(runtime::NormalAt(1, 0, i));
  }
  const auto codec = Make("topk:0.01");
  const std::vector<std::byte> encoded = Encode(*codec, values, shape);
  EXPECT_LT(static_cast<double>(encoded.size()), 5.08 * 1311);
  EXPECT_EQ(encoded.size(), codec->EncodedBytesMax(shape));
  std::vector<float> decoded(values.size());
  ASSERT_TRUE(codec->Decode(encoded, shape, decoded.data()).ok());
  EXPECT_EQ(std::ranges::count_if(decoded, [](float value) { return value != 0; }), 1311);
}

TEST(TopK, HalvesLeaveTheirRoundingWithTheCaller) {
  const auto codec = Make("topk:0.5,values=fp16");
  const CodecShape shape = {.elements = 4};
  std::vector<float> carried = {0.01f, 0.1f, -1e6f, 0.02f};
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  ASSERT_TRUE(codec->EncodeAndSubtract(carried.data(), {.shape = shape}, out).ok());
  EXPECT_THAT(carried, testing::ElementsAre(0.01f, 0.1f - 0.0999755859375f, -1e6f + 65504, 0.02f));
}

TEST(TopK, OptionsOutOfRangeAreRefused) {
  for (const char* text : {"topk:0", "topk:1.01", "topk:nan", "topk:0.1,values=fp8",
                           "topk:0.1,ratio=1", "topk:values=16"}) {
    EXPECT_FALSE(MakeCodec(text).ok()) << text;
  }
}

TEST(TopK, MoreElementsThanPlacesCanSayAreRefused) {
  const auto codec = Make("topk:1e-9");
  const CodecShape shape = {.elements = 1ull << 32};
  std::vector<std::byte> out(64);
  EXPECT_EQ(codec->Encode(nullptr, {.shape = shape}, out).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(codec->Check(out, shape).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace topk_test
}  // namespace leeway::compress
