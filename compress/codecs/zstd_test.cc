#include <zstd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "compress/registry.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace zstd_test {
namespace {

using testing::HasSubstr;

constexpr std::size_t kZstdBlock = 131072;
constexpr DType kZstdTypes[] = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                                DType::kBFloat16, DType::kInt32,   DType::kInt64};

std::shared_ptr<const Codec> ZstdOf(const std::string& text = "zstd") {
  const auto made = MakeCodec(text);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? made->codec : nullptr;
}

std::vector<std::byte> ZstdEncoded(const Codec& codec, const void* values,
                                   const CodecShape& shape) {
  std::vector<std::byte> out(codec.EncodedBytesMax(shape));
  const auto bytes = codec.Encode(values, {.shape = shape}, out);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_LE(bytes.value_or(0), out.size());
  out.resize(bytes.value_or(0));
  return out;
}

// Elements whose lower bytes are random and whose upper bytes mostly repeat.
std::vector<std::byte> ZstdValues(const CodecShape& shape) {
  const std::size_t width = SizeOf(shape.dtype);
  std::vector<std::byte> bytes(shape.elements * width);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t random = runtime::RandomAt(1, 2, i);
    bytes[i] = static_cast<std::byte>(i % width < width / 2 ? random : 0x3e + random % 3);
  }
  return bytes;
}

TEST(ZstdCodec, EveryTypeComesBackBitByBit) {
  for (const char* text : {"zstd", "zstd:level=19"}) {
    const auto codec = ZstdOf(text);
    for (const DType dtype : kZstdTypes) {
      ASSERT_TRUE(codec->Supports(dtype));
      for (const std::size_t elements :
           {0ul, 1ul, 2ul, 33ul, 1000ul, kZstdBlock, 2 * kZstdBlock + 1}) {
        if (elements > 1000 && text != std::string("zstd")) continue;  // slow
        const CodecShape shape{.dtype = dtype, .elements = elements, .columns = 10};
        const std::vector<std::byte> values = ZstdValues(shape);
        const std::vector<std::byte> encoded = ZstdEncoded(*codec, values.data(), shape);
        EXPECT_TRUE(codec->Check(encoded, shape).ok());
        std::vector<std::byte> decoded(values.size(), std::byte{7});
        ASSERT_TRUE(codec->Decode(encoded, shape, decoded.data()).ok());
        EXPECT_EQ(decoded, values) << text << ' ' << Name(dtype) << ' ' << elements;
        if (elements >= 1000) {
          // A quarter of the bits of half of the bytes.
          EXPECT_LT(static_cast<double>(encoded.size()), 0.7 * static_cast<double>(values.size()));
        }
      }
    }
  }
}

TEST(ZstdCodec, IncompressibleBytesAreStored) {
  for (const DType dtype : kZstdTypes) {
    const CodecShape shape{.dtype = dtype, .elements = kZstdBlock + 5};
    std::vector<std::byte> values(shape.elements * SizeOf(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::byte>(runtime::RandomAt(5, 6, i));
    }
    const auto codec = ZstdOf();
    const std::vector<std::byte> encoded = ZstdEncoded(*codec, values.data(), shape);
    EXPECT_EQ(encoded.size(), values.size() + 2 * 4 * SizeOf(dtype));
    EXPECT_EQ(encoded.size(), codec->EncodedBytesMax(shape));
    std::vector<std::byte> decoded(values.size());
    ASSERT_TRUE(codec->Decode(encoded, shape, decoded.data()).ok());
    EXPECT_EQ(decoded, values);
  }
}

TEST(ZstdCodec, AStoredMessageIsAsDescribed) {
  const CodecShape shape{.dtype = DType::kInt32, .elements = 3};
  const std::int32_t values[] = {0x04030201, 0x14131211, 0x24232221};
  const unsigned char expected[] = {3, 0, 0, 0, 1, 0x11, 0x21, 3, 0, 0, 0, 2, 0x12, 0x22,
                                    3, 0, 0, 0, 3, 0x13, 0x23, 3, 0, 0, 0, 4, 0x14, 0x24};
  const std::vector<std::byte> encoded = ZstdEncoded(*ZstdOf(), values, shape);
  ASSERT_EQ(encoded.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(encoded.data(), expected, sizeof(expected)), 0);
}

TEST(ZstdCodec, HigherLevelsCompressMore) {
  std::vector<std::int64_t> values(50000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int64_t>(runtime::RandomAt(1, 2, i % 3000) % 1000 * i / 40);
  }
  const CodecShape shape{.dtype = DType::kInt64, .elements = values.size()};
  EXPECT_LT(ZstdEncoded(*ZstdOf("zstd:level=19"), values.data(), shape).size(),
            ZstdEncoded(*ZstdOf("zstd:level=1"), values.data(), shape).size());
}

TEST(ZstdCodec, NothingRemainsForErrorFeedback) {
  std::vector<float> carried = {1, -2, INFINITY, NAN, 5};
  const CodecShape shape{.elements = carried.size()};
  const auto codec = ZstdOf();
  std::vector<std::byte> out(codec->EncodedBytesMax(shape));
  ASSERT_TRUE(codec->EncodeAndSubtract(carried.data(), {.shape = shape}, out).ok());
  EXPECT_THAT(carried, testing::Each(0.0f));
}

// A frame that declares or holds another size than the shape has, and more than one frame.
TEST(ZstdCodec, FramesOfAnotherSizeAreRefused) {
  const CodecShape shape{.dtype = DType::kFloat16, .elements = 1000};
  const auto frame_of = [](std::size_t size, bool says_size = true) {
    ZSTD_CCtx* const context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, says_size ? 1 : 0);
    const std::vector<std::byte> zeros(size);
    std::vector<std::byte> frame(ZSTD_compressBound(size));
    frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), zeros.data(), size));
    ZSTD_freeCCtx(context);
    return frame;
  };
  const auto error = [&](const std::vector<std::byte>& frame) {
    std::vector<std::byte> message;
    for (int p = 0; p < 2; ++p) {
      const auto size = static_cast<std::uint32_t>(frame.size());
      const auto* const bytes = reinterpret_cast<const std::byte*>(&size);
      message.insert(message.end(), bytes, bytes + 4);
      message.insert(message.end(), frame.begin(), frame.end());
    }
    const absl::Status checked = ZstdOf()->Check(message, shape);
    std::vector<std::byte> values(2000);
    EXPECT_EQ(ZstdOf()->Decode(message, shape, values.data()), checked);
    return std::string(checked.message());
  };
  EXPECT_EQ(error(frame_of(1000)), "");
  EXPECT_THAT(error(frame_of(999)), HasSubstr("no frame of 1000 bytes"));
  EXPECT_THAT(error(frame_of(1001)), HasSubstr("no frame of 1000 bytes"));
  EXPECT_THAT(error(frame_of(std::size_t{1} << 24)), HasSubstr("no frame of 1000 bytes"));
  EXPECT_THAT(error(frame_of(1000, /*says_size=*/false)), HasSubstr("no frame of 1000 bytes"));
  std::vector<std::byte> two = frame_of(1000);
  const std::vector<std::byte> empty = frame_of(0);
  two.insert(two.end(), empty.begin(), empty.end());
  EXPECT_THAT(error(two), HasSubstr("no frame of 1000 bytes"));
  // A false content size. A frame of more than 255 bytes has it behind its 5 bytes of header, less
  // 256.
  std::vector<std::byte> lying = frame_of(1001);
  ASSERT_EQ(lying[5], std::byte{(1001 - 256) & 0xff});
  lying[5] = std::byte{(1000 - 256) & 0xff};
  EXPECT_THAT(error(lying), HasSubstr("malformed zstd message"));
  EXPECT_THAT(error(std::vector<std::byte>(1001)), HasSubstr("1001 bytes for 1000"));
  EXPECT_THAT(error({}), HasSubstr("no frame"));
}

TEST(ZstdCodec, OptionsHaveTheirRanges) {
  for (const char* wrong : {"zstd:level=0", "zstd:level=20", "zstd:level=1.5", "zstd:3"}) {
    EXPECT_EQ(MakeCodec(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace zstd_test
}  // namespace leeway::compress
