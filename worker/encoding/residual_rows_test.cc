#include "worker/encoding/residual_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::worker {
namespace residual_rows_test {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST(ResidualRows, StartAsZerosAndKeepValues) {
  ResidualRows rows(2, 1 << 20);
  EXPECT_THAT(rows.Use(7), Each(0));
  rows.Use(7)[1] = 5;
  rows.Use(8)[0] = 3;
  EXPECT_THAT(rows.Use(7), ElementsAre(0, 5));
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.SumOfSquares(), 34);
}

TEST(ResidualRows, TheColdestRowIsTakenFirst) {
  ResidualRows rows(1, 3 * 52);  // three rows of 4 bytes with their overhead
  ASSERT_EQ(rows.rows_max(), 3u);
  for (const std::uint64_t key : {1, 2, 3, 4, 5}) rows.Use(key)[0] = static_cast<float>(key);
  rows.Use(1);  // used again: now 2 is the coldest
  EXPECT_EQ(rows.excess(), 2u);
  std::vector<float> values;
  EXPECT_EQ(rows.TakeColdest(&values), 2u);
  EXPECT_EQ(rows.TakeColdest(&values), 3u);
  EXPECT_THAT(values, ElementsAre(2, 3));
  EXPECT_EQ(rows.excess(), 0u);
  EXPECT_THAT(rows.Use(2), Each(0));  // in the memory of a row that was taken out
  std::vector<std::uint64_t> order;
  rows.ForEach([&](std::uint64_t key, std::span<const float>) { order.push_back(key); });
  EXPECT_THAT(order, ElementsAre(4, 5, 1, 2));
}

TEST(ResidualRows, HaveRoomForAtLeastOne) {
  ResidualRows rows(1000, 1);
  EXPECT_EQ(rows.rows_max(), 1u);
  rows.Use(1);
  rows.Use(2);
  std::vector<float> values;
  EXPECT_EQ(rows.TakeColdest(&values), 1u);
  EXPECT_EQ(values.size(), 1000u);
}

}  // namespace
}  // namespace residual_rows_test
}  // namespace leeway::worker
