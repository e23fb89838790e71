#include "proto/messages/shard_of_keys.h"

#include "gtest/gtest.h"
#include "proto/messages/layout.h"

namespace leeway::proto {
namespace {

TEST(ShardOfKeys, SaysWhatShardOfKeySays) {
  for (const std::uint32_t shards : {1u, 2u, 3u, 4u, 32u, 33u, 4096u}) {
    const ShardOfKeys shard_of(shards);
    for (std::uint64_t key = 0; key < 1000; ++key) {
      ASSERT_EQ(shard_of(key), ShardOfKey(key, shards)) << key << " " << shards;
      ASSERT_EQ(shard_of(~key), ShardOfKey(~key, shards)) << ~key << " " << shards;
    }
  }
}

}  // namespace
}  // namespace leeway::proto
