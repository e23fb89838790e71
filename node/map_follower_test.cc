#include "node/map_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/membership.h"

namespace leeway::node {
namespace {

std::shared_ptr<proto::ClusterMap> MapOf(std::uint64_t version) {
  auto map = std::make_shared<proto::ClusterMap>();
  map->version = version;
  map->servers.resize(2);
  map->workers.resize(3);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    map->servers[rank] = {.node = 2 + rank, .rank = rank, .alive = true, .endpoints = {}};
  }
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    map->workers[rank].node = 10 + rank;
    map->workers[rank].rank = rank;
  }
  return map;
}

TEST(MapFollower, OnlyNewerMapsAreTaken) {
  MapFollower follower;
  EXPECT_TRUE(follower.Take(MapOf(2)));
  EXPECT_FALSE(follower.Take(MapOf(2)));
  EXPECT_FALSE(follower.Take(MapOf(1)));
  EXPECT_TRUE(follower.Take(MapOf(4)));
  EXPECT_EQ(follower.newest()->version, 4u);
}

TEST(MapFollower, EachEndIsToldOnce) {
  MapFollower follower;
  EXPECT_TRUE(follower.Untold().empty());
  proto::NodeDown down;
  down.node = 11;
  EXPECT_TRUE(follower.Take(down));
  EXPECT_FALSE(follower.Take(down));
  auto map = MapOf(2);
  map->epoch = 3;
  map->servers[1].alive = false;
  map->workers[1].state = proto::WorkerState::kDead;  // told
  map->workers[2].state = proto::WorkerState::kLeft;
  EXPECT_TRUE(follower.Take(map));
  const std::vector<proto::NodeDown> untold = follower.Untold();
  ASSERT_EQ(untold.size(), 2u);
  EXPECT_EQ(untold[0].node, 3u);
  EXPECT_EQ(untold[0].role, Role::kServer);
  EXPECT_FALSE(untold[0].left);
  EXPECT_EQ(untold[0].epoch, 3u);
  EXPECT_EQ(untold[1].node, 12u);
  EXPECT_TRUE(untold[1].left);
  EXPECT_TRUE(follower.Untold().empty());
  EXPECT_FALSE(follower.Take(untold[0]));  // the late message itself
}

TEST(DescribeMissing, NamesThoseThatAreNotThere) {
  auto map = MapOf(1);
  EXPECT_EQ(DescribeMissing(*map, 2, 3), "2 of 2 servers and 3 of 3 workers have joined");
  map->servers.pop_back();
  map->workers.erase(map->workers.begin() + 1);
  EXPECT_EQ(DescribeMissing(*map, 2, 3),
            "1 of 2 servers and 2 of 3 workers have joined; missing server 1 and worker 1");
  EXPECT_EQ(
      DescribeMissing(proto::ClusterMap(), 2, 1),
      "0 of 2 servers and 0 of 1 workers have joined; missing server 0, server 1 and worker 0");
  EXPECT_EQ(
      DescribeMissing(*map, 1, 100),
      "1 of 1 servers and 2 of 100 workers have joined; missing worker 1, worker 3, worker 4, "
      "worker 5, worker 6, worker 7, worker 8, worker 9 and 90 more");
}

TEST(DescribeMissing, TheDeadAreMissingAndThoseThatLeftAreNot) {
  auto map = MapOf(1);
  map->servers[0].alive = false;
  map->workers[0].state = proto::WorkerState::kDead;
  map->workers[1].state = proto::WorkerState::kLeft;
  EXPECT_EQ(DescribeMissing(*map, 2, 3),
            "1 of 2 servers and 2 of 3 workers have joined; missing server 0 and worker 0");
}

}  // namespace
}  // namespace leeway::node
