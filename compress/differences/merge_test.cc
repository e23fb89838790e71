#include <string>

#include "absl/strings/match.h"
#include "compress/differences/testing.h"

namespace leeway::compress {
namespace merge_test {
namespace {

struct Steps {
  std::vector<Bytes> versions;
  std::vector<Bytes> messages;
  std::vector<std::span<const std::byte>> spans;
};

void MakeSteps(std::size_t width, std::uint64_t every, Steps* steps) {
  steps->versions = {RandomBytes(20000 * width, width)};
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Bytes& before = steps->versions.back();
    const Bytes after = Stepped(before, width, every, step);
    steps->messages.push_back(DifferenceOf(before, after, width));
    steps->versions.push_back(after);
  }
  steps->spans.assign(steps->messages.begin(), steps->messages.end());
}

TEST(MergedDifferences, AreThoseFromTheFirstVersionToTheLast) {
  for (const std::size_t width : kWidths) {
    for (const std::uint64_t every : {5, 20, 300}) {
      Steps steps;
      MakeSteps(width, every, &steps);
      Bytes merged;
      const auto shorter = MergeDifferences(steps.spans, width, 20000, &merged);
      ASSERT_TRUE(shorter.ok() && *shorter) << shorter.status();
      EXPECT_EQ(merged, DifferenceOf(steps.versions.front(), steps.versions.back(), width));
    }
  }
}

TEST(MergedDifferences, LeaveOutWhatHasComeBack) {
  const Bytes first = RandomBytes(3000, 1);
  Bytes second = first;
  Step(&second, 2, 700, 3);
  Bytes third = second;
  Step(&third, 2, 3, ~0ull);
  Bytes fourth = third;
  Step(&fourth, 2, 700, 0ull - 3);
  const Bytes messages[] = {DifferenceOf(first, second, 2), DifferenceOf(second, third, 2),
                            DifferenceOf(third, fourth, 2)};
  const std::vector<std::span<const std::byte>> spans(std::begin(messages), std::end(messages));
  Bytes merged;
  ASSERT_TRUE(MergeDifferences(spans, 2, 1500, &merged).value());
  EXPECT_EQ(merged, DifferenceOf(first, fourth, 2));
  Bytes back;
  const std::span<const std::byte> there_and_back[] = {messages[0], messages[2]};
  ASSERT_TRUE(MergeDifferences(there_and_back, 2, 1500, &back).value());
  EXPECT_EQ(back.size(), 1);
}

TEST(MergedDifferences, OfNoMessagesChangeNothing) {
  Bytes merged;
  ASSERT_TRUE(MergeDifferences({}, 4, 10, &merged).value());
  EXPECT_EQ(merged.size(), 1);
}

TEST(MergedDifferences, ThatAreNoShorterThanTheBlockAreLeftToTheBlock) {
  const Bytes zeros(2000), random = RandomBytes(2000, 2);
  Bytes half = random;
  std::fill(half.begin() + 1000, half.end(), std::byte{0});
  const Bytes messages[] = {DifferenceOf(zeros, half, 2), DifferenceOf(half, random, 2)};
  const std::vector<std::span<const std::byte>> spans(std::begin(messages), std::end(messages));
  Bytes merged;
  EXPECT_FALSE(MergeDifferences(spans, 2, 1000, &merged).value());
  EXPECT_TRUE(merged.empty());
}

TEST(MergedDifferences, NameTheMessageThatIsMalformed) {
  Steps steps;
  MakeSteps(2, 20, &steps);
  steps.spans[3] = steps.spans[3].first(10);
  Bytes merged = {std::byte{1}};
  const auto failed = MergeDifferences(steps.spans, 2, 20000, &merged);
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(failed.status().message(), "message 3: malformed difference"));
  EXPECT_EQ(merged.size(), 1);
}

}  // namespace
}  // namespace merge_test
}  // namespace leeway::compress
