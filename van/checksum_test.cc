#include "van/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/string_view.h"

namespace leeway::van {
namespace {

const std::byte* Bytes(absl::string_view text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

std::uint32_t Of(absl::string_view text) { return ChecksumOf(Bytes(text), text.size()); }

// Values from RFC 3720, appendix B.4, and the check value of CRC-32C.
TEST(ChecksumTest, IsCrc32c) {
  EXPECT_EQ(Of("123456789"), 0xe3069283u);
  EXPECT_EQ(Of(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Of(std::string(32, '\xff')), 0x62a8ab43u);
}

TEST(ChecksumTest, DoesNotDependOnHowTheBytesCome) {
  std::mt19937_64 random(7);
  for (const std::size_t size : {0, 1, 7, 8, 63, 64, 65, 255, 1000, 4096, 100'003}) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    for (int i = 0; i < 20; ++i) {
      Checksum checksum;
      for (std::size_t at = 0; at < size;) {
        const std::size_t part = std::min<std::size_t>(size - at, 1 + random() % (size / 3 + 1));
        checksum.Add(Bytes(text) + at, part);
        at += part;
      }
      ASSERT_EQ(checksum.value(), Of(text)) << size;
    }
  }
}

TEST(ChecksumTest, EveryFlippedBitChangesIt) {
  std::string text = "a push of some values";
  const std::uint32_t whole = Of(text);
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(Of(text), whole) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

// 0 means that there is no checksum.
TEST(ChecksumTest, IsNeverZero) {
  EXPECT_EQ(Of("\xab\x9b\xe0\x9b"), 0xffffffffu);  // their CRC32C is 0
}

}  // namespace
}  // namespace leeway::van
