// How much memory rows take up, all that belongs to them counted.
#include <numeric>

#include "ps/store/testing/store_test_util.h"

namespace leeway::ps {
namespace {

// The largest share that rows took up on the way to `rows`, of what their payload and keys do.
double LargestOverhead(const TableSpec& spec, std::uint64_t rows, std::uint64_t from) {
  const Shard shard(spec, {.hash_seed = 7});
  constexpr std::uint64_t kStep = 500;
  const std::vector<float> values(kStep * spec.row_width, 1);
  double largest = 0;
  for (std::uint64_t begin = 0; begin < rows; begin += kStep) {
    std::vector<std::uint64_t> keys(kStep);
    std::iota(keys.begin(), keys.end(), begin);
    EXPECT_TRUE(shard->Apply(SparsePush<float>(keys, values)).ok());
    const StoreStats stats = shard->stats();
    const auto needed = static_cast<double>(stats.value_bytes + stats.rows * 8);
    if (stats.rows >= from) {
      largest = std::max(largest, static_cast<double>(stats.memory_bytes) / needed);
    }
  }
  EXPECT_EQ(shard->stats().rows, rows);
  return largest;
}

// On the way from 50 thousand rows to more than twice as many the index is filled as much as it can
// be, grows, and is filled as little as it can be.
TEST(RowMemory, StaysWithinAThirdMoreThanTheRowsThemselves) {
  EXPECT_LE(LargestOverhead(WithUpdater(TableSpec::Sparse("e", 16), "add"), 150'000, 50'000), 1.3);
  EXPECT_LE(LargestOverhead(WithUpdater(TableSpec::Sparse("e", 16), "adam", {}), 150'000, 50'000),
            1.3);
}

TEST(RowMemory, ASmallTableTakesLittle) {
  const Shard shard(WithUpdater(TableSpec::Sparse("e", 16), "add"));
  EXPECT_TRUE(shard->Apply(SparsePush<float>({1}, std::vector<float>(16, 1))).ok());
  EXPECT_LT(shard->stats().memory_bytes, 20'000u);
}

}  // namespace
}  // namespace leeway::ps
