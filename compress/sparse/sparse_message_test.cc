#include "compress/sparse/sparse_message.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace sparse_message_test {
namespace {

using enum SparseValues;

std::vector<std::byte> Write(const std::vector<std::uint32_t>& places,
                             const std::vector<float>& values, SparseValues format = kFloat32) {
  std::vector<std::byte> out(SparseMessageBytes(values.size(), places.size(), format));
  EXPECT_EQ(WriteSparseMessage(places, values.data(), values.size(), format, out), out.size());
  return out;
}

std::vector<int> Numbers(const std::vector<std::byte>& bytes) {
  std::vector<int> numbers;
  for (const std::byte one : bytes) numbers.push_back(std::to_integer<int>(one));
  return numbers;
}

// Reads a message in memory of exactly its size; true if it is well-formed.
bool Read(const std::vector<std::byte>& bytes, std::size_t elements,
          std::vector<std::uint32_t>* places, std::vector<float>* values) {
  places->clear();
  values->clear();
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  const auto message = ReadSparseMessage("test", exact, elements);
  if (!message.ok()) return false;
  return ForEachSent(*message, nullptr, [&](std::uint64_t place, float value) {
    places->push_back(static_cast<std::uint32_t>(place));
    values->push_back(value);
  });
}
bool IsRead(const std::vector<std::byte>& bytes, std::size_t elements) {
  std::vector<std::uint32_t> places;
  std::vector<float> values;
  return Read(bytes, elements, &places, &values);
}

// 1.0 is 3f800000 and 3c00, −2.0 is c0000000 and c000.
TEST(SparseMessage, IsLaidOutAsItsHeaderSays) {
  std::vector<float> values(100);
  EXPECT_THAT(Numbers(Write({}, values)), testing::ElementsAre(3));
  EXPECT_THAT(Numbers(Write({}, {})), testing::IsEmpty());
  values[10] = 1;
  values[97] = -2;
  // log2(100 / 2) gives b = 5. 10 = 0 × 32 + 10, 97 = 3 × 32 + 1: the low bits 01010 00001, the
  // high bits 0 + 0 and 3 + 1 of 2 + 3.
  EXPECT_THAT(
      Numbers(Write({10, 97}, values)),
      testing::ElementsAre(2, 2, 0, 0, 0, 0b00101010, 0, 0b10001, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0));
  EXPECT_THAT(Numbers(Write({10, 97}, values, kFloat16)),
              testing::ElementsAre(18, 2, 0, 0, 0, 0b00101010, 0, 0b10001, 0, 0x3c, 0, 0xc0));
  EXPECT_THAT(Numbers(Write({0, 2, 9}, {1, 5, -2, 5, 5, 5, 5, 5, 5, 1}, kFloat16)),
              testing::ElementsAre(17, 0b101, 0b10, 0, 0x3c, 0, 0xc0, 0, 0x3c));
  EXPECT_THAT(Numbers(Write({0, 2}, {1, 5, -2}, kFloat16)),
              testing::ElementsAre(17, 0b101, 0, 0x3c, 0, 0xc0));
  EXPECT_THAT(Numbers(Write({0, 1}, {1, -2}, kFloat16)),
              testing::ElementsAre(16, 0, 0x3c, 0, 0xc0));
}

TEST(SparseMessage, CarriesAnyPlaces) {
  for (const std::size_t elements : {1, 2, 31, 64, 65, 1000, 70'000}) {
    for (const double share : {0.0, 0.001, 0.01, 0.1, 0.2, 0.26, 0.5, 0.95, 0.99, 1.0}) {
      for (const SparseValues format : {kFloat32, kFloat16}) {
        std::vector<float> values(elements), sent;
        std::vector<std::uint32_t> places;
        for (std::uint32_t i = 0; i < elements; ++i) {
          values[i] = static_cast<float>(runtime::NormalAt(1, elements, i));
          if (runtime::UniformAt(2, elements, i) >= share) continue;
          places.push_back(i);
          sent.push_back(SentValue(values[i], format));
        }
        const std::vector<std::byte> bytes = Write(places, values, format);
        EXPECT_LE(bytes.size(), SparseMessageBytesMax(elements, format));
        std::vector<std::uint32_t> places_read;
        std::vector<float> values_read;
        ASSERT_TRUE(Read(bytes, elements, &places_read, &values_read)) << elements << ' ' << share;
        if (bytes[0] == std::byte{0} || bytes[0] == std::byte{16}) {  // dense: the zeros too
          ASSERT_EQ(places_read.size(), elements);
          for (const std::uint32_t place : places_read) {
            const bool is_sent = std::ranges::binary_search(places, place);
            EXPECT_EQ(values_read[place], is_sent ? SentValue(values[place], format) : 0.0f);
          }
        } else {
          EXPECT_EQ(places_read, places);
          EXPECT_EQ(values_read, sent);
        }
      }
    }
  }
}

TEST(SparseMessage, TakesTheShortestForm) {
  std::size_t longest = 0;
  for (std::size_t sent = 0; sent <= 1000; ++sent) {
    longest = std::max(longest, SparseMessageBytes(1000, sent, kFloat32));
  }
  EXPECT_EQ(longest, SparseMessageBytesMax(1000, kFloat32));
  EXPECT_EQ(longest, 4001u);
  EXPECT_EQ(SparseMessageBytes(1000, 500, kFloat32), 1u + 125 + 2000);
  // b = 6: 60 bits, 10 + 15 bits.
  EXPECT_EQ(SparseMessageBytes(1000, 10, kFloat32), 1u + 4 + 8 + 4 + 40);
  // 1 % of a block of 128 Ki elements: 1.07 bytes for a place.
  EXPECT_LT(static_cast<double>(SparseMessageBytes(131'072, 1311, kFloat32)), 5.08 * 1311);
}

// Hence the bytes for the largest number that may be sent bound those for every smaller one.
TEST(SparseMessage, IsNoShorterWhenMoreIsSent) {
  for (const std::size_t elements : {1, 2, 7, 64, 100, 1000, 4097}) {
    for (const SparseValues format : {kFloat32, kFloat16}) {
      for (std::size_t sent = 1; sent <= elements; ++sent) {
        EXPECT_LE(SparseMessageBytes(elements, sent - 1, format),
                  SparseMessageBytes(elements, sent, format))
            << elements << ' ' << sent;
      }
    }
  }
}

TEST(SparseMessage, ValuesBeyondHalvesSaturate) {
  EXPECT_EQ(SentValue(1e30f, kFloat16), 65504.0f);
  EXPECT_EQ(SentValue(-65519.0f, kFloat16), -65504.0f);
  EXPECT_EQ(SentValue(0.1f, kFloat16), 0.0999755859375f);
  EXPECT_EQ(SentValue(0.1f, kFloat32), 0.1f);
  std::vector<float> carried = {1e30f, 0.1f, 5.0f};
  SubtractSent(std::vector<std::uint32_t>{0, 1}, kFloat16, carried.data());
  EXPECT_THAT(carried, testing::ElementsAre(1e30f, 0.1f - 0.0999755859375f, 5.0f));
}

TEST(SparseMessage, InconsistentCountsAreRefused) {
  std::vector<float> values(100);
  values[10] = 1;
  values[97] = -2;
  const std::vector<std::byte> good = Write({10, 97}, values);
  ASSERT_TRUE(IsRead(good, 100));
  EXPECT_FALSE(IsRead(good, 33));  // other lengths of the places
  EXPECT_FALSE(IsRead(good, 97));  // a place beyond
  EXPECT_FALSE(IsRead(good, 0));
  const auto with = [&good](std::size_t at, int value) {
    std::vector<std::byte> bytes = good;
    bytes.at(at) = static_cast<std::byte>(value);
    return bytes;
  };
  EXPECT_FALSE(IsRead(with(0, 4), 100));         // no form
  EXPECT_FALSE(IsRead(with(0, 2 + 32), 100));    // no format
  EXPECT_FALSE(IsRead(with(1, 0), 100));         // no places
  EXPECT_FALSE(IsRead(with(1, 3), 100));         // more places
  EXPECT_FALSE(IsRead(with(6, 0b100), 100));     // a bit beyond the low ones
  EXPECT_FALSE(IsRead(with(7, 0b00001), 100));   // one place has no high bits
  EXPECT_FALSE(IsRead(with(7, 0b10011), 100));   // three have
  EXPECT_FALSE(IsRead(with(7, 0b100001), 100));  // a high bit beyond: place 129
  EXPECT_FALSE(IsRead(with(7, 0b00011), 100));   // 10, then 1
  EXPECT_FALSE(IsRead(with(11, 0x7f), 100));     // the value 7f800000
  const std::vector<std::byte> bitmap = Write({0, 2}, {1, 5, -2}, kFloat16);
  ASSERT_TRUE(IsRead(bitmap, 3));
  std::vector<std::byte> beyond = bitmap;
  beyond[1] = std::byte{0b1001};
  EXPECT_FALSE(IsRead(beyond, 3));
  EXPECT_TRUE(IsRead(beyond, 4));
  std::vector<std::byte> infinite_half = bitmap;
  infinite_half[3] = std::byte{0x7c};
  EXPECT_FALSE(IsRead(infinite_half, 3));
}

TEST(SparseMessage, TheValuesOptionIsAText) {
  SparseValues format = kFloat32;
  CodecOptions options = {{"", "0.5"}, {"values", "fp16"}};
  ASSERT_TRUE(TakeSparseValues("test", &options, &format).ok());
  EXPECT_EQ(format, kFloat16);
  EXPECT_THAT(options, testing::ElementsAre(testing::Pair("", "0.5")));
  options = {{"values", "fp32"}};
  ASSERT_TRUE(TakeSparseValues("test", &options, &format).ok());
  EXPECT_EQ(format, kFloat32);
  options = {{"values", "bf16"}};
  EXPECT_THAT(std::string(TakeSparseValues("test", &options, &format).message()),
              testing::HasSubstr("fp32 or fp16"));
}

}  // namespace
}  // namespace sparse_message_test
}  // namespace leeway::compress
