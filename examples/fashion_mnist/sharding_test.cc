#include "examples/fashion_mnist/sharding.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace leeway::fashion_mnist {
namespace {

std::vector<std::uint32_t> Copy(std::span<const std::uint32_t> samples) {
  return {samples.begin(), samples.end()};
}

TEST(ShardingTest, AnEpochCoversEverySampleOnce) {
  for (const std::size_t samples : {1000u, 1003u, 61u, 3u}) {
    Sharding sharding(samples, 16, 4, 7);
    std::vector<int> seen(samples);
    for (std::size_t step = 0; step < sharding.steps_per_epoch(); ++step) {
      std::size_t taken = 0;
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        for (const std::uint32_t sample : sharding.Take(step, rank)) {
          ++seen.at(sample);
          ++taken;
        }
      }
      EXPECT_EQ(taken, sharding.StepSize(step));
    }
    EXPECT_EQ(seen, std::vector<int>(samples, 1));
  }
}

TEST(ShardingTest, WorkersTogetherTakeWhatOneWithTheWholeBatchTakes) {
  Sharding many(1001, 8, 4, 7);
  Sharding one(1001, 32, 1, 7);
  ASSERT_EQ(many.steps_per_epoch(), one.steps_per_epoch());
  for (std::size_t step = 0; step < 3 * many.steps_per_epoch(); ++step) {
    std::vector<std::uint32_t> together;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const std::vector<std::uint32_t> part = Copy(many.Take(step, rank));
      if (many.StepSize(step) == 32) {
        EXPECT_EQ(part.size(), 8u);
      }
      together.insert(together.end(), part.begin(), part.end());
    }
    EXPECT_EQ(together, Copy(one.Take(step, 0)));
  }
}

TEST(ShardingTest, OrderDependsOnSeedAndEpochAlone) {
  Sharding a(500, 500, 1, 7), b(500, 500, 1, 7), other(500, 500, 1, 8);
  const std::vector<std::uint32_t> first = Copy(a.Take(0, 0));
  const std::vector<std::uint32_t> second = Copy(a.Take(1, 0));
  EXPECT_EQ(Copy(b.Take(1, 0)), second);  // also if step 0 was never taken
  EXPECT_EQ(Copy(b.Take(0, 0)), first);
  EXPECT_NE(first, second);
  EXPECT_NE(Copy(other.Take(0, 0)), first);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST(FillBatchTest, ScalesPixels) {
  Images images;
  images.pixels.assign(2 * kPixels, 0);
  images.pixels[kPixels] = 255;
  images.labels = {3, 9};
  const std::vector<std::uint32_t> samples = {1, 0};
  Batch batch;
  FillBatch(images, samples, &batch);
  EXPECT_EQ(batch.labels, (std::vector<std::uint8_t>{9, 3}));
  ASSERT_EQ(batch.inputs.size(), 2 * kPixels);
  EXPECT_NEAR(batch.inputs[0], (1 - 0.286) / 0.353, 1e-6);
  EXPECT_NEAR(batch.inputs[1], -0.286 / 0.353, 1e-6);
}

}  // namespace
}  // namespace leeway::fashion_mnist
