#include "compress/registry.h"

#include <set>

#include "compress/common/float_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::compress {
namespace registry_test {
namespace {

using testing::Contains;
using testing::HasSubstr;

// A codec whose decoded values are all 1.
class Ones final : public FloatCodec {
 public:
  std::size_t EncodedBytesMax(const CodecShape&) const override { return 0; }
  absl::StatusOr<std::size_t> Encode(const void*, const EncodeTerms&,
                                     std::span<std::byte>) const override {
    return 0;
  }
  absl::Status Decode(std::span<const std::byte>, const CodecShape& shape,
                      void* values) const override {
    std::fill_n(static_cast<float*>(values), shape.elements, 1.0f);
    return absl::OkStatus();
  }
};

absl::StatusOr<std::unique_ptr<Codec>> MakeOnes(const CodecOptions&) {
  return std::make_unique<Ones>();
}

TEST(CodecRegistry, AnUnknownCodecNamesTheKnownOnes) {
  const absl::Status status = MakeCodec("zip:9").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("no codec named 'zip'; there are "));
  EXPECT_THAT(status.message(), HasSubstr("none"));
}

TEST(CodecRegistry, AUsersCodecIsFoundByItsName) {
  ASSERT_TRUE(RegisterCodec("ones", MakeOnes).ok());
  EXPECT_THAT(CodecNames(), Contains("ones"));
  const auto made = MakeCodec("ones");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->name, "ones");
  EXPECT_EQ(RegisterCodec("ones", MakeOnes).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(RegisterCodec("a:b", MakeOnes).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterCodec("", MakeOnes).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(RegisterCodec("empty", nullptr).code(), absl::StatusCode::kInvalidArgument);
}

// The default implementations agree with the codec's Encode and Decode.
TEST(CodecRegistry, DefaultsOfAUsersCodecFollowFromTheRest) {
  const Ones ones;
  const CodecShape shape{.elements = 3, .columns = 3};
  EXPECT_TRUE(ones.Check({}, shape).ok());
  float carried[3] = {1, 2, 3};
  ASSERT_TRUE(ones.EncodeAndSubtract(carried, {.shape = shape}, {}).ok());
  EXPECT_THAT(carried, testing::ElementsAre(0, 1, 2));
  ASSERT_TRUE(ones.DecodeAdd({}, shape, 1, carried).ok());
  EXPECT_THAT(carried, testing::ElementsAre(1, 2, 3));
}

TEST(CodecRegistry, BuiltinNamesHaveDifferentHashes) {
  std::set<CodecId> ids = {kNoCodec};
  for (const std::string& name : CodecNames()) EXPECT_TRUE(ids.insert(IdOf(name)).second) << name;
}

TEST(Registry, AFactoryThatMakesNothingIsAnError) {
  ASSERT_TRUE(RegisterCodec(
                  "makes-nothing",
                  [](const CodecOptions&) -> absl::StatusOr<std::unique_ptr<Codec>> {
                    return std::unique_ptr<Codec>();
                  },
                  1)
                  .ok());
  EXPECT_EQ(MakeCodec("makes-nothing").status().message(),
            "the factory of codec 'makes-nothing' has made none");
  EXPECT_FALSE(RegisterCodec("auto", nullptr, 1).ok());
}

}  // namespace
}  // namespace registry_test
}  // namespace leeway::compress
