#include "compress/differences/difference.h"

#include <cmath>

#include "compress/differences/testing.h"
#include "compress/kernels/kernels.h"

namespace leeway::compress {
namespace difference_test {
namespace {

constexpr std::size_t kBlockBytes = 512 << 10;

TEST(Difference, NothingChangedIsOneByte) {
  for (const std::size_t width : kWidths) {
    for (const std::size_t elements : {0, 1, 1000}) {
      const Bytes block = RandomBytes(elements * width, 1);
      EXPECT_EQ(ExpectRoundTrip(block, block, width), 1);
    }
  }
}

TEST(Difference, OneChangedElementIsAFewBytes) {
  for (const std::size_t width : kWidths) {
    const std::size_t elements = kBlockBytes / width;
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}, elements / 2, elements - 1}) {
      const Bytes before = RandomBytes(kBlockBytes, width);
      Bytes after = before;
      Step(&after, width, i, 0x8182838485868788);
      EXPECT_LE(ExpectRoundTrip(before, after, width), 9 + 2 * width) << i;
    }
  }
}

// On both sides of where a gap takes more bytes.
TEST(Difference, GapsOfEveryLength) {
  for (const std::size_t gap : {0, 1, 251, 252, 253, 254, 255, 256, 65535, 65536, 65537, 200000}) {
    const Bytes before = RandomBytes(262144 * 2, 3);
    Bytes after = before;
    Step(&after, 2, 5, 1);
    Step(&after, 2, 5 + gap + 1, ~0ull);
    ExpectRoundTrip(before, after, 2);
  }
}

TEST(Difference, AllElementsChanged) {
  for (const std::size_t width : kWidths) {
    const Bytes before = RandomBytes(kBlockBytes, 4);
    Bytes after = before;
    for (std::size_t i = 0; i < kBlockBytes / width; ++i) Step(&after, width, i, i % 3 + 1);
    EXPECT_LT(ExpectRoundTrip(before, after, width), kBlockBytes / width / 2);
  }
}

TEST(Difference, BlocksThatAreNoLongerAreBetterSentThemselves) {
  for (const std::size_t width : kWidths) {
    for (const std::size_t size : {std::size_t{8}, kBlockBytes}) {
      Bytes message = {std::byte{7}};
      EXPECT_FALSE(EncodeDifference(RandomBytes(size, 5), RandomBytes(size, 6), width, &message));
      EXPECT_EQ(message, Bytes{std::byte{7}});
    }
  }
}

TEST(Difference, MessagesAreAppended) {
  const Bytes before = RandomBytes(4000, 7), after = Stepped(before, 4, 50, 8);
  Bytes message = {std::byte{1}, std::byte{2}};
  ASSERT_TRUE(EncodeDifference(before, after, 4, &message));
  const Bytes alone = DifferenceOf(before, after, 4);
  EXPECT_EQ(Bytes(message.begin() + 2, message.end()), alone);
}

TEST(Difference, NanAndMinusZeroAreBitsAsAnyOthers) {
  const float special[] = {0.0f,   -0.0f,   INFINITY, -INFINITY, NAN,  -NAN,
                           1e-45f, -1e-45f, 3e38f,    -3e38f,    1.0f, -1.0f};
  std::vector<float> from(2000, 0.5f), to = from;
  std::size_t at = 0;
  for (const float a : special) {
    for (const float b : special) {
      from[at] = a, to[at] = b;
      at += 7;
    }
  }
  Bytes before(8000), after(8000);
  std::memcpy(before.data(), from.data(), 8000);
  std::memcpy(after.data(), to.data(), 8000);
  Step(&after, 4, 4 * 12 * 7, 0x1234);  // another payload of a NaN
  ExpectRoundTrip(before, after, 4);
}

TEST(Difference, RoundTripsOfEverySizeAndShareOnEveryLevel) {
  for (const Level level : LevelsHere()) {
    ChooseLevel(level);
    for (const std::size_t width : kWidths) {
      for (const std::size_t elements : {400, 1001, 4095, 4096, 4097, 70000}) {
        for (const std::uint64_t every : {1, 2, 7, 8, 9, 30, 100, 1000}) {
          const Bytes before = RandomBytes(elements * width, elements);
          const Bytes after = Stepped(before, width, every, every);
          Bytes message;
          if (EncodeDifference(before, after, width, &message)) {
            ExpectRoundTrip(before, after, width);
          } else {
            EXPECT_LE(every, 2u) << elements;
          }
        }
      }
    }
  }
  ChooseLevel(LevelsHere().back());
}

// What one step of AdamW does to weights of bf16, nearly: one element of a hundred changes, most by
// the last bit.
TEST(Difference, OfAStepOfTrainingIsLessThanAHundredthOfTheBlock) {
  Bytes before = RandomBytes(kBlockBytes, 9), after = before;
  for (std::size_t i = 0; i < kBlockBytes / 2; ++i) {
    const std::uint64_t random = runtime::RandomAt(10, 3, i);
    if (random % 100 != 0) continue;
    const std::uint64_t size = (random >> 40) % 10 == 0 ? 2 : 1;
    Step(&after, 2, i, (random >> 32) % 2 == 0 ? size : -size);
  }
  EXPECT_LT(ExpectRoundTrip(before, after, 2), kBlockBytes / 100);
}

// At most 1.2 times the entropy: 8.1 bits for the place and 16 for the value of one in a hundred.
TEST(Difference, OfRandomValuesIsHardlyLongerThanTheyAre) {
  const Bytes before = RandomBytes(kBlockBytes, 11), others = RandomBytes(kBlockBytes, 12);
  Bytes after = before;
  std::size_t changed = 0;
  for (std::size_t i = 0; i < kBlockBytes / 2; ++i) {
    if (runtime::RandomAt(13, 4, i) % 100 != 0) continue;
    std::memcpy(after.data() + 2 * i, others.data() + 2 * i, 2);
    ++changed;
  }
  EXPECT_LT(ExpectRoundTrip(before, after, 2), static_cast<double>(changed) * 24.1 / 8 * 1.2);
}

}  // namespace
}  // namespace difference_test
}  // namespace leeway::compress
