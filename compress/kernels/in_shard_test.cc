#include <cstdint>
#include <utility>
#include <vector>

#include "compress/kernels/kernels.h"
#include "gtest/gtest.h"
#include "proto/messages/layout.h"
#include "runtime/base/random.h"

namespace leeway::compress {
namespace {

std::vector<std::uint64_t> KeysIn(std::uint32_t shard, std::uint32_t num_shards, std::size_t size,
                                  runtime::Random* random) {
  std::vector<std::uint64_t> keys;
  while (keys.size() < size) {
    const std::uint64_t key = random->Below(~0ull) >> random->Below(64);
    if (proto::ShardOfKey(key, num_shards) == shard) keys.push_back(key);
  }
  return keys;
}

// Vectors of exactly that size, so that who reads beyond an end is seen.
TEST(InShardTest, FindsAKeyOfAnotherShardAtEveryPosition) {
  runtime::Random random(1);
  for (const std::uint32_t num_shards : {2u, 32u}) {
    const std::uint32_t shard = num_shards - 2;
    const std::uint64_t stranger = KeysIn(shard + 1, num_shards, 1, &random).front();
    for (const std::size_t size : {0, 1, 3, 7, 8, 31, 33, 287, 288, 289, 400}) {
      std::vector<std::uint64_t> keys = KeysIn(shard, num_shards, size, &random);
      for (const Level level : LevelsHere()) {
        const auto all = KernelsOf(level).all_in_shard;
        EXPECT_TRUE(all(keys.data(), size, num_shards - 1, shard)) << Name(level);
        for (std::size_t i = 0; i < size; ++i) {
          const std::uint64_t key = std::exchange(keys[i], stranger);
          EXPECT_FALSE(all(keys.data(), size, num_shards - 1, shard))
              << Name(level) << ": " << i << " of " << size;
          EXPECT_TRUE(all(keys.data(), i, num_shards - 1, shard)) << Name(level);
          keys[i] = key;
        }
      }
    }
  }
}

TEST(InShardTest, AllKeysBelongToTheOnlyShard) {
  const std::vector<std::uint64_t> keys = {0, 1, ~0ull};
  for (const Level level : LevelsHere()) {
    EXPECT_TRUE(KernelsOf(level).all_in_shard(keys.data(), keys.size(), 0, 0)) << Name(level);
  }
}

}  // namespace
}  // namespace leeway::compress
