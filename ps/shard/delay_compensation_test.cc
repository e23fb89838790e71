#include "ps/shard/delay_compensation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace leeway::ps {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

template <class T>
runtime::Buffer BufferOf(const std::vector<T>& values) {
  return runtime::Buffer::CopyOf(values.data(), values.size() * sizeof(T));
}

class DelayCompensationTest : public testing::Test {
 protected:
  std::vector<float> Compensate(const char* consistency, const std::vector<float>& gradient,
                                const std::vector<float>& now, std::uint32_t worker = 0) {
    auto changed = compensation_.Compensate(worker, 1, 0, Consistency::Parse(consistency).value(),
                                            DType::kFloat32, BufferOf(gradient), BufferOf(now));
    if (!changed.has_value()) return {};
    const auto span = changed->gradient.as<float>();
    const std::vector<float> values(span.begin(), span.end());
    compensation_.NoteApplied(1, 0, *std::move(changed));
    return values;
  }

  runtime::ByteBudget budget_{.bytes_max = 64};
  DelayCompensation compensation_{&budget_};
};

// g + λ g ⊙ g ⊙ (w − w_bak), by hand.
TEST_F(DelayCompensationTest, AddsTheDiagonalOfTheOuterProduct) {
  compensation_.NotePulled(0, 1, 0, BufferOf<float>({1, 1, 1}));
  EXPECT_THAT(Compensate("asp,dc=0.5", {2, -2, 0}, {2, 2, 9}),
              ElementsAre(2 + 0.5f * 4 * 1, -2 + 0.5f * 4 * 1, 0));
  // Nothing has changed since.
  EXPECT_THAT(Compensate("asp,dc=0.5", {2, -2, 3}, {1, 1, 1}), ElementsAre(2, -2, 3));
}

TEST_F(DelayCompensationTest, TheAdaptiveFormDividesByTheRootOfAMeanOfSquares) {
  compensation_.NotePulled(0, 1, 0, BufferOf<float>({0}));
  const auto expected = [](double g, double w, double v) {
    return static_cast<float>(g + 2 / std::sqrt(v + 1e-7) * g * g * w);
  };
  double v = 0.1 * 9;
  EXPECT_THAT(Compensate("asp,dc=adaptive:2/0.9", {3}, {1}),
              ElementsAre(FloatNear(expected(3, 1, v), 1e-4f)));
  v = 0.9 * v + 0.1 * 4;
  EXPECT_THAT(Compensate("asp,dc=adaptive:2/0.9", {-2}, {3}),
              ElementsAre(FloatNear(expected(-2, 3, v), 1e-4f)));
}

TEST_F(DelayCompensationTest, AGradientThatWasNotAppliedIsNotInTheMean) {
  compensation_.NotePulled(0, 1, 0, BufferOf<float>({0}));
  const auto policy = Consistency::Parse("asp,dc=adaptive:2/0.9").value();
  const auto refused = compensation_.Compensate(0, 1, 0, policy, DType::kFloat32,
                                                BufferOf<float>({100}), BufferOf<float>({1}));
  ASSERT_TRUE(refused.has_value());
  const double v = 0.1 * 9;
  EXPECT_THAT(Compensate("asp,dc=adaptive:2/0.9", {3}, {1}),
              ElementsAre(FloatNear(static_cast<float>(3 + 2 / std::sqrt(v) * 9), 1e-4f)));
}

// 8 bytes an element; with no room for it nothing is compensated.
TEST_F(DelayCompensationTest, TheMeanOfSquaresIsWithinTheLimit) {
  const std::vector<float> five(5, 1), nine(9, 1);
  compensation_.NotePulled(0, 1, 0, BufferOf(five));
  EXPECT_THAT(Compensate("asp,dc=adaptive:2/0.9", five, five), testing::SizeIs(5));
  EXPECT_EQ(budget_.bytes, 5 * 4u + 5 * 8u);
  compensation_.NotePulled(0, 1, 0, BufferOf(nine));  // of another size: as after a change
  EXPECT_THAT(Compensate("asp,dc=adaptive:2/0.9", nine, nine), ElementsAre());
  EXPECT_LE(budget_.bytes, 64u);
  compensation_.NotePulled(0, 1, 0, BufferOf(std::vector<float>(17)));  // does not fit
  EXPECT_LE(budget_.bytes, 64u);
  compensation_.Clear();
  EXPECT_EQ(budget_.bytes, 0u);
}

// Where the square of a large double is infinite.
TEST_F(DelayCompensationTest, UnchangedValuesAreNotCompensated) {
  compensation_.NotePulled(0, 1, 0, BufferOf<double>({1}));
  const auto same =
      compensation_.Compensate(0, 1, 0, Consistency::Parse("asp,dc=1").value(), DType::kFloat64,
                               BufferOf<double>({1e200}), BufferOf<double>({1}));
  ASSERT_TRUE(same.has_value());
  EXPECT_EQ(same->gradient.as<double>()[0], 1e200);
}

TEST_F(DelayCompensationTest, OfWhatAWorkerPulledTheNewestIsKeptWithinTheLimit) {
  for (std::uint64_t block = 0; block < 5; ++block) {
    compensation_.NotePulled(0, 1, block, BufferOf<float>({1, 2, 3, 4}));
    compensation_.NotePulled(0, 1, block, BufferOf<float>({1, 2, 3, 4}));
    EXPECT_LE(budget_.bytes, 64u);
  }
  EXPECT_EQ(budget_.bytes, 64u);
  EXPECT_THAT(Compensate("asp,dc=1", {1, 1, 1, 1}, {1, 2, 3, 4}), ElementsAre());  // dropped
  compensation_.NotePulled(1, 1, 0, BufferOf<float>({1}));
  EXPECT_THAT(Compensate("asp,dc=1", {1}, {3}, /*worker=*/1), ElementsAre(3));
  EXPECT_THAT(Compensate("asp,dc=1", {1}, {3}, /*worker=*/2), ElementsAre());  // another worker
  compensation_.DropWorker(1);
  EXPECT_THAT(Compensate("asp,dc=1", {1}, {3}, /*worker=*/1), ElementsAre());
  compensation_.Clear();
  EXPECT_EQ(budget_.bytes, 0u);
}

}  // namespace
}  // namespace leeway::ps
