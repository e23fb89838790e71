#include "compress/codec.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace {

TEST(CodecTest, NoneSharesTheSendersMemory) {
  const std::vector<float> values = {1, 2, 3};
  const Codec* codec = *FindCodec("none");
  const auto encoded =
      codec->Encode(DType::kFloat32, runtime::Buffer::Unowned(values.data(), 12));
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(static_cast<const void*>(encoded->data()), values.data());
  const auto decoded = codec->Decode(DType::kFloat32, 3, *encoded);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->as<float>()[2], 3);
  EXPECT_TRUE(codec->lossless());
}

TEST(CodecTest, NoneRefusesEveryOtherLength) {
  const std::vector<float> values(8);
  const Codec* codec = *FindCodec("none");
  for (const std::size_t bytes : {0, 3, 4, 11, 13, 16}) {
    const auto decoded =
        codec->Decode(DType::kFloat32, 3, runtime::Buffer::Unowned(values.data(), bytes));
    EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
}

TEST(CodecTest, AnUnknownCodecNamesTheKnownOnes) {
  EXPECT_EQ(FindCodec("zip").status().message(), "no codec 'zip'; there is: none");
}

}  // namespace
}  // namespace leeway::compress
