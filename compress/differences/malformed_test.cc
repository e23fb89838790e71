// Messages that no encoder has written, in memory of exactly their size.
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <memory>

#include "absl/strings/match.h"
#include "compress/differences/fuzz/difference_input.h"
#include "compress/differences/testing.h"

namespace leeway::compress {
namespace malformed_test {
namespace {

constexpr std::size_t kElements = 3000;

// Checks and applies the message; expects that both agree and that a refused one changes nothing.
absl::Status Try(const Bytes& message, std::size_t width, std::size_t elements = kElements) {
  const auto exact = std::make_unique_for_overwrite<std::byte[]>(message.size());
  std::copy(message.begin(), message.end(), exact.get());
  const std::span<const std::byte> span(exact.get(), message.size());
  const Bytes before(elements * width, std::byte{0x5a});
  Bytes values = before;
  const absl::Status checked = CheckDifference(span, width, elements);
  const absl::Status applied = ApplyDifference(span, width, values);
  EXPECT_EQ(applied, checked);
  if (!applied.ok()) {
    EXPECT_EQ(applied.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StartsWith(applied.message(), "malformed difference message: "));
    EXPECT_TRUE(values == before);
  }
  return applied;
}

// One of each form, with streams of each kind.
std::vector<Bytes> Messages(std::size_t width) {
  std::vector<Bytes> messages;
  for (const std::uint64_t every : {5, 20, 200}) {
    const Bytes before = RandomBytes(kElements * width, every);
    messages.push_back(DifferenceOf(before, Stepped(before, width, every, 3), width));
  }
  Bytes up(kElements * width);
  for (std::size_t i = 0; i < kElements; ++i) Step(&up, width, i, 1);
  messages.push_back(DifferenceOf(Bytes(up.size()), up, width));
  return messages;
}

Bytes Message(std::initializer_list<int> bytes) {
  Bytes message;
  for (const int byte : bytes) message.push_back(static_cast<std::byte>(byte));
  return message;
}

void ExpectMalformed(const Bytes& message, const char* why, std::size_t elements = kElements) {
  const absl::Status status = Try(message, 1, elements);
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status << ", not " << why;
}

TEST(MalformedDifferences, EveryTruncationIsRefused) {
  for (const std::size_t width : kWidths) {
    for (const Bytes& message : Messages(width)) {
      EXPECT_EQ(Try(message, width), absl::OkStatus());
      for (std::size_t size = 0; size < message.size(); ++size) {
        EXPECT_FALSE(Try(Bytes(message.begin(), message.begin() + size), width).ok()) << size;
      }
      Bytes longer = message;
      longer.push_back(std::byte{0});
      EXPECT_FALSE(Try(longer, width).ok());
    }
  }
}

TEST(MalformedDifferences, FlippedBitsAreRefusedOrStayWithinTheBlock) {
  for (const std::size_t width : kWidths) {
    for (const Bytes& message : Messages(width)) {
      for (std::size_t i = 0; i < 2000; ++i) {
        const std::uint64_t random = runtime::RandomAt(width, 5, i);
        Bytes flipped = message;
        flipped[i < 40 ? i % message.size() : random % message.size()] ^=
            static_cast<std::byte>(1u << (random >> 60 & 7));
        (void)Try(flipped, width);
        Bytes input = Message({kElements & 0xff, kElements >> 8, std::countr_zero(width)});
        input.insert(input.end(), flipped.begin(), flipped.end());
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
      }
    }
  }
}

TEST(MalformedDifferences, OfAnotherSizeAreRefused) {
  for (const Bytes& message : Messages(2)) {
    EXPECT_FALSE(Try(message, 1).ok());
    EXPECT_FALSE(Try(message, 4).ok());
    EXPECT_FALSE(Try(message, 2, 100).ok());
  }
}

TEST(MalformedDifferences, SayWhatIsWrong) {
  ExpectMalformed({}, "no bytes");
  ExpectMalformed(Message({3}), "its form is unknown");
  ExpectMalformed(Message({0, 0}), "1 bytes too many");
  ExpectMalformed(Message({1}), "does not change 1 to 3000 elements");
  ExpectMalformed(Message({1, 0}), "does not change 1 to 3000 elements");
  ExpectMalformed(Message({1, 0xb9, 0x17}), "does not change 1 to 3000 elements");  // 3001
  ExpectMalformed(Message({1, 1, 0xf7, 2}), "no shorter than a bitmap");            // 375
  ExpectMalformed(Message({1, 1, 1}), "too few bytes");
  ExpectMalformed(Message({1, 1, 1, 2, 9, 9}), "2 bytes for 1 of them");
  ExpectMalformed(Message({1, 1, 2, 2, 0, 0}), "2 bytes are not the gaps of 1");
  ExpectMalformed(Message({1, 1, 1, 1, 253}), "not the gaps");
  ExpectMalformed(Message({1, 1, 3, 3, 253, 0xb8, 0x0b}), "not the gaps");  // 3000
  ExpectMalformed(Message({1, 2, 4, 4, 253, 0xb7, 0x0b, 0}), "not the gaps");
  ExpectMalformed(Message({1, 1, 9, 9, 255, 255, 255, 255, 255, 255, 255, 255, 255}),
                  "not the gaps");
  ExpectMalformed(Message({1, 1, 1, 1, 9}), "too few bytes");
  ExpectMalformed(Message({1, 1, 3, 1, 9}), "no frame of 3 bytes");
  ExpectMalformed(Message({2, 3, 2, 7, 4}), "4 elements are marked, not 3", 11);
  ExpectMalformed(Message({2, 4, 2, 7, 8, 1, 1}), "behind the last one", 11);
  ExpectMalformed(Message({2, 3, 2, 7, 0, 0, 1}), "1 bytes too many", 11);
}

TEST(MalformedDifferences, NumbersAreAtMost64Bits) {
  Bytes message = Message({1});
  message.insert(message.end(), 9, std::byte{0xff});
  for (const int last : {0x01, 0x02, 0x7f, 0x81}) {
    message.resize(10);
    message.push_back(static_cast<std::byte>(last));
    ExpectMalformed(message, "does not change");
  }
}

// By hand, as docs/compression.md describes it.
TEST(DifferenceMessages, AreAsDescribed) {
  Bytes values(600);
  values[0] = std::byte{10}, values[9] = std::byte{20}, values[500] = std::byte{30};
  // Gaps 0, 8 and 490; differences −1, +2 and 0.
  const Bytes gaps = Message({1, 3, 5, 5, 0, 8, 253, 0xea, 1, 3, 1, 4, 0});
  ASSERT_EQ(ApplyDifference(gaps, 1, values), absl::OkStatus());
  EXPECT_EQ(values[0], std::byte{9});
  EXPECT_EQ(values[9], std::byte{22});
  EXPECT_EQ(values[500], std::byte{30});
  // Elements 0 and 9 of 11, of 2 bytes: differences −1 and +256.
  Bytes words(22);
  ASSERT_EQ(ApplyDifference(Message({2, 2, 2, 1, 2, 2, 1, 0, 2, 0, 2}), 2, words),
            absl::OkStatus());
  Bytes expected(22);
  Step(&expected, 2, 0, ~0ull);
  Step(&expected, 2, 9, 256);
  EXPECT_EQ(words, expected);
}

}  // namespace
}  // namespace malformed_test
}  // namespace leeway::compress
