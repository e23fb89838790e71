#include "proto/messages/chain.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leeway::proto {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ShardOwner kA{0, 0}, kB{1, 1}, kC{2, 0}, kD{3, 0}, kE{4, 0};
constexpr ShardOwner kLost{kNoServer, 0};

// Shard 0: A; 1: B, then A; 2: lost; 3: C, A, B, joining D and E; 4: D.
const ClusterMap kMap{
    .version = 1,
    .epoch = 1,
    .owners = {kA, kB, kLost, kC, kD},
    .replicas = {{1, kA, false}, {3, kA, false}, {3, kB, false}, {3, kD, true}, {3, kE, true}}};

TEST(ChainTest, HeadsComeFirstAndJoiningReplicasAreNoMembers) {
  EXPECT_THAT(ChainOf(kMap, 0).members, ElementsAre(kA));
  EXPECT_THAT(ChainOf(kMap, 1).members, ElementsAre(kB, kA));
  EXPECT_THAT(ChainOf(kMap, 3).members, ElementsAre(kC, kA, kB));
  EXPECT_THAT(ChainOf(kMap, 4).members, ElementsAre(kD));
  for (const std::uint32_t shard : {0, 1, 4}) EXPECT_THAT(ChainOf(kMap, shard).joining, IsEmpty());
  EXPECT_THAT(ChainOf(kMap, 3).joining, ElementsAre(kD, kE));
}

TEST(ChainTest, LostAndUnknownShardsHaveNoMembers) {
  for (const std::uint32_t shard : {2u, 5u, ~0u}) {
    EXPECT_EQ(ChainOf(kMap, shard), Chain());
    EXPECT_EQ(PredecessorOf(kMap, shard, kA), std::nullopt);
    EXPECT_EQ(SuccessorOf(kMap, shard, kA), std::nullopt);
    EXPECT_EQ(PredecessorOf(kMap, shard, kLost), std::nullopt);
  }
  EXPECT_EQ(ChainOf(ClusterMap(), 0), Chain());
}

TEST(ChainTest, EveryMemberButTheHeadHasAPredecessor) {
  EXPECT_EQ(PredecessorOf(kMap, 0, kA), std::nullopt);
  EXPECT_EQ(PredecessorOf(kMap, 3, kC), std::nullopt);
  EXPECT_EQ(PredecessorOf(kMap, 3, kA), kC);
  EXPECT_EQ(PredecessorOf(kMap, 3, kB), kA);
}

TEST(ChainTest, TheLastMemberFeedsJoiningReplicas) {
  EXPECT_EQ(PredecessorOf(kMap, 3, kD), kB);
  EXPECT_EQ(PredecessorOf(kMap, 3, kE), kB);
  EXPECT_EQ(SuccessorOf(kMap, 3, kD), std::nullopt);
}

TEST(ChainTest, EveryMemberButTheLastHasASuccessor) {
  EXPECT_EQ(SuccessorOf(kMap, 0, kA), std::nullopt);
  EXPECT_EQ(SuccessorOf(kMap, 3, kC), kA);
  EXPECT_EQ(SuccessorOf(kMap, 3, kA), kB);
  EXPECT_EQ(SuccessorOf(kMap, 3, kB), std::nullopt);
}

TEST(ChainTest, AServerWithoutTheShardHasNoNeighbours) {
  EXPECT_EQ(PredecessorOf(kMap, 1, kC), std::nullopt);
  EXPECT_EQ(SuccessorOf(kMap, 1, kC), std::nullopt);
  constexpr ShardOwner kOtherThread{1, 0};  // of a server that does, by another thread
  EXPECT_EQ(SuccessorOf(kMap, 1, kOtherThread), std::nullopt);
}

}  // namespace
}  // namespace leeway::proto
