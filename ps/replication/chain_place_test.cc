#include "ps/replication/chain_place.h"

#include <gtest/gtest.h>

namespace leeway::ps::chain_place_test {

using Role = ChainPlace::Role;

// A map of one shard's chain; the incarnation of server r is 500 + r.
proto::ClusterMap MapOf(const std::vector<std::uint32_t>& members,
                        const std::vector<std::uint32_t>& joining = {}) {
  proto::ClusterMap map{.version = 1, .epoch = 7};
  map.owners = {{.server_rank = members.front()}};
  for (std::size_t i = 1; i < members.size(); ++i) {
    map.replicas.push_back({.place = {.server_rank = members[i]}});
  }
  for (const std::uint32_t rank : joining) {
    map.replicas.push_back({.place = {.server_rank = rank}, .joining = true});
  }
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    map.servers.push_back({.node = rank, .rank = rank, .alive = true, .incarnation = 500 + rank});
  }
  return map;
}

class ChainPlaceOfServer1 : public testing::Test {
 protected:
  static std::optional<std::uint32_t> RankOf(const std::optional<Peer>& peer) {
    if (!peer.has_value()) return std::nullopt;
    EXPECT_EQ(peer->incarnation, 500 + peer->place.server_rank);
    return peer->place.server_rank;
  }

  proto::ShardOwner here_{.server_rank = 1};
  ChainPlace place_{0, &here_};
};

TEST_F(ChainPlaceOfServer1, IsNoReplicaBeforeTheFirstMap) {
  EXPECT_EQ(place_.role(), Role::kNone);
  EXPECT_FALSE(place_.head().has_value());
  EXPECT_FALSE(place_.predecessor().has_value());
  EXPECT_FALSE(place_.successor().has_value());
}

TEST_F(ChainPlaceOfServer1, HeadPassesTheLogToTheNextMember) {
  EXPECT_TRUE(place_.TakeMap(MapOf({1, 2, 3})));
  EXPECT_EQ(place_.role(), Role::kHead);
  EXPECT_EQ(place_.epoch(), 7u);
  EXPECT_FALSE(place_.predecessor().has_value());
  EXPECT_EQ(RankOf(place_.successor()), 2u);
  EXPECT_FALSE(place_.is_tail());
  EXPECT_FALSE(place_.alone());
}

TEST_F(ChainPlaceOfServer1, FollowerIsBetweenItsNeighbours) {
  place_.TakeMap(MapOf({3, 1, 2}));
  EXPECT_EQ(place_.role(), Role::kFollower);
  EXPECT_EQ(RankOf(place_.head()), 3u);
  EXPECT_EQ(RankOf(place_.predecessor()), 3u);
  EXPECT_EQ(RankOf(place_.successor()), 2u);
}

TEST_F(ChainPlaceOfServer1, TailPassesTheLogToTheFirstOneThatIsJoining) {
  place_.TakeMap(MapOf({3, 1}, {4, 2}));
  EXPECT_TRUE(place_.is_tail());
  EXPECT_EQ(RankOf(place_.successor()), 4u);
  place_.TakeMap(MapOf({1, 3}, {4}));
  EXPECT_FALSE(place_.is_tail());
  EXPECT_EQ(RankOf(place_.successor()), 3u);
}

TEST_F(ChainPlaceOfServer1, JoiningReplicaTakesTheLogFromTheTail) {
  place_.TakeMap(MapOf({3, 2}, {4, 1}));
  EXPECT_EQ(place_.role(), Role::kJoining);
  EXPECT_FALSE(place_.is_member());
  EXPECT_EQ(RankOf(place_.predecessor()), 2u);
  EXPECT_FALSE(place_.successor().has_value());
}

TEST_F(ChainPlaceOfServer1, IsNotAloneWhileAnotherIsJoining) {
  place_.TakeMap(MapOf({1}));
  EXPECT_TRUE(place_.alone());
  place_.TakeMap(MapOf({1}, {2}));
  EXPECT_FALSE(place_.alone());
}

TEST_F(ChainPlaceOfServer1, ANewerMapOfTheSameChainChangesNothing) {
  EXPECT_TRUE(place_.TakeMap(MapOf({1, 2})));
  EXPECT_FALSE(place_.TakeMap(MapOf({1, 2})));
  EXPECT_TRUE(place_.TakeMap(MapOf({1, 2}, {3})));
  EXPECT_TRUE(place_.TakeMap(MapOf({2})));
  EXPECT_EQ(place_.role(), Role::kNone);
}

TEST(IsAliveTest, AServerThatWasStartedAgainIsAnotherThanBefore) {
  proto::ClusterMap map = MapOf({1, 2});
  const Peer peer{.place = {.server_rank = 2}, .incarnation = 502};
  EXPECT_TRUE(IsAlive(map, peer));
  map.servers[2].incarnation = 602;
  EXPECT_FALSE(IsAlive(map, peer));
  map.servers[2] = {.node = 2, .rank = 2, .alive = false, .incarnation = 502};
  EXPECT_FALSE(IsAlive(map, peer));
}

}  // namespace leeway::ps::chain_place_test
