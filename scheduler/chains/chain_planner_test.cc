#include "scheduler/chains/chain_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "scheduler/chains/loads.h"

namespace leeway::scheduler {
namespace {

using proto::Chain;
using proto::ShardOwner;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::uint32_t> Ranks(const std::vector<ShardOwner>& places) {
  std::vector<std::uint32_t> ranks;
  for (const ShardOwner& place : places) ranks.push_back(place.server_rank);
  return ranks;
}

// How many members, and how many heads, each server has.
struct Counts {
  std::map<std::uint32_t, int> members, heads;
};
Counts CountsOf(const ChainPlanner& planner) {
  Counts counts;
  for (const auto& [rank, server] : planner.servers())
    counts.members[rank] = counts.heads[rank] = 0;
  for (const Chain& chain : planner.chains()) {
    for (const ShardOwner& place : chain.members) ++counts.members[place.server_rank];
    if (!chain.members.empty()) ++counts.heads[chain.members[0].server_rank];
  }
  return counts;
}
int Spread(const std::map<std::uint32_t, int>& counts) {
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end(), by_count);
  return most->second - least->second;
}

// Completes every state transfer at once, until there is nothing left to do.
void Settle(ChainPlanner* planner) {
  for (int round = 0; round < 10000; ++round) {
    for (std::uint32_t shard = 0; shard < planner->chains().size(); ++shard) {
      for (std::uint32_t rank : Ranks(planner->chains()[shard].joining))
        planner->Ready(shard, rank);
    }
    if (!planner->Step() && planner->Joining() == 0) return;
  }
  FAIL() << "it never settles";
}

TEST(ChainPlanner, DealsMembersOnDifferentServersEvenly) {
  for (std::uint32_t replication : {1, 2, 3}) {
    for (std::uint32_t servers : {1, 2, 3, 5, 8}) {
      ChainPlanner planner(replication);
      planner.Deal(std::vector<std::uint32_t>(servers, 2), 0);
      ASSERT_THAT(planner.chains(), SizeIs(64 * servers));
      for (const Chain& chain : planner.chains()) {
        const std::vector<std::uint32_t> ranks = Ranks(chain.members);
        EXPECT_THAT(ranks, SizeIs(std::min(replication, servers)));
        EXPECT_THAT(std::set<std::uint32_t>(ranks.begin(), ranks.end()), SizeIs(ranks.size()));
        EXPECT_THAT(chain.joining, IsEmpty());
      }
      EXPECT_EQ(Spread(CountsOf(planner).members), 0);
      EXPECT_EQ(Spread(CountsOf(planner).heads), 0);
      EXPECT_TRUE(planner.Settled());
    }
  }
}

TEST(ChainPlanner, ServersWithMoreThreadsGetMore) {
  ChainPlanner planner(1);
  planner.Deal({1, 3}, 40);
  EXPECT_THAT(CountsOf(planner).members, ElementsAre(std::pair(0, 10), std::pair(1, 30)));
}

TEST(ChainPlanner, TheShardsOfADeadHeadGoToAllTheOthersAlike) {
  ChainPlanner planner(2);
  planner.Deal({1, 1, 1, 1}, 0);
  std::map<std::uint32_t, int> heirs;
  for (const Chain& chain : planner.chains()) {
    if (chain.members[0].server_rank == 0) ++heirs[chain.members[1].server_rank];
  }
  EXPECT_THAT(heirs, SizeIs(3));
  EXPECT_LE(Spread(heirs), 2);
}

TEST(ChainPlanner, OnADeathTheNextIsHeadAndAnotherReplicaIsBegun) {
  ChainPlanner planner(2);
  planner.Deal({1, 1, 1}, 6);
  const std::vector<Chain> before = planner.chains();
  planner.Remove(0);
  for (std::uint32_t shard = 0; shard < 6; ++shard) {
    const Chain& chain = planner.chains()[shard];
    std::vector<ShardOwner> survivors = before[shard].members;
    std::erase_if(survivors, [](const ShardOwner& place) { return place.server_rank == 0; });
    EXPECT_EQ(chain.members, survivors);
    EXPECT_THAT(chain.joining, SizeIs(2 - survivors.size()));
  }
  EXPECT_EQ(planner.Lost(), 0u);
  Settle(&planner);
  for (const Chain& chain : planner.chains()) EXPECT_THAT(chain.members, SizeIs(2));
}

TEST(ChainPlanner, AShardWithoutLivingMemberIsLostForGood) {
  ChainPlanner planner(1);
  planner.Deal({1, 1}, 4);
  planner.Remove(1);
  EXPECT_EQ(planner.Lost(), 2u);
  planner.Add(1, 1);
  planner.Balance({});
  Settle(&planner);
  EXPECT_EQ(planner.Lost(), 2u);
  EXPECT_THAT(CountsOf(planner).members, ElementsAre(std::pair(0, 1), std::pair(1, 1)));
}

TEST(ChainPlanner, TransfersAtOnceAreFew) {
  ChainPlanner planner(2);
  planner.Deal({1, 1, 1}, 96);
  planner.Remove(0);
  std::map<std::uint32_t, std::uint32_t> busy;
  for (const Chain& chain : planner.chains()) {
    if (chain.joining.empty()) continue;
    ++busy[chain.joining[0].server_rank];
    ++busy[chain.members.back().server_rank];
  }
  for (const auto& [rank, count] : busy) EXPECT_LE(count, kTransfersPerServerMax) << rank;
  EXPECT_GT(planner.Joining(), 4u);
  Settle(&planner);
  EXPECT_THAT(CountsOf(planner).members, ElementsAre(std::pair(1, 96), std::pair(2, 96)));
}

TEST(ChainPlanner, AMoveIsATransferThenAMemberThenTheOldPlaceGoes) {
  ChainPlanner planner(1);
  planner.Deal({1}, 2);
  planner.Add(1, 1);
  planner.Balance({});
  ASSERT_TRUE(planner.Step());
  ASSERT_EQ(planner.Joining(), 1u);
  const std::uint32_t shard = planner.chains()[0].joining.empty() ? 1 : 0;
  const Chain& chain = planner.chains()[shard];
  EXPECT_FALSE(planner.Step());  // it waits for the transfer
  planner.Ready(shard, 0);       // not the one that is joining
  planner.Ready(77, 1);
  EXPECT_FALSE(planner.Step());
  planner.Ready(shard, 1);
  planner.Ready(shard, 1);
  ASSERT_TRUE(planner.Step());
  EXPECT_THAT(Ranks(chain.members), ElementsAre(0, 1));
  planner.Ready(shard, 1);  // said again
  ASSERT_TRUE(planner.Step());
  EXPECT_THAT(Ranks(chain.members), ElementsAre(1));
  EXPECT_FALSE(planner.Step());
  EXPECT_TRUE(planner.Settled());
}

// No node knows of it before the next step, and the member that fed it may be gone by then.
TEST(ChainPlanner, AReplicaReadyBeforeTheChainChangedMustBeReadyAgain) {
  ChainPlanner planner(2);
  planner.Deal({1, 1}, 1);
  planner.Add(2, 1);
  const Chain& chain = planner.chains()[0];
  const std::uint32_t tail = Ranks(chain.members).back(), head = Ranks(chain.members).front();
  planner.Drain(tail);
  ASSERT_TRUE(planner.Step());
  ASSERT_THAT(Ranks(chain.joining), ElementsAre(2));
  planner.Ready(0, 2);
  planner.Remove(tail);
  planner.Step();
  EXPECT_THAT(Ranks(chain.members), ElementsAre(head));
  EXPECT_THAT(Ranks(chain.joining), ElementsAre(2));
  planner.Ready(0, 2);
  ASSERT_TRUE(planner.Step());
  EXPECT_THAT(Ranks(chain.members), ElementsAre(head, 2));
}

TEST(ChainPlanner, ANewServerGetsItsShareOfMembersAndHeads) {
  for (std::uint32_t replication : {1, 2}) {
    ChainPlanner planner(replication);
    planner.Deal({1, 1, 1}, 0);
    planner.Remove(2);
    Settle(&planner);
    planner.Add(2, 1);
    planner.Balance({});
    Settle(&planner);
    EXPECT_LE(Spread(CountsOf(planner).members), 1);
    EXPECT_LE(Spread(CountsOf(planner).heads), 1);
  }
}

TEST(ChainPlanner, ADrainedServerIsEmptyAndTheOthersEven) {
  ChainPlanner planner(2);
  planner.Deal({1, 1, 1, 1}, 0);
  planner.Drain(1);
  planner.Drain(1);
  Settle(&planner);
  EXPECT_EQ(planner.PlacesOn(1), 0u);
  EXPECT_EQ(planner.Stuck(), 0u);
  for (const Chain& chain : planner.chains()) EXPECT_THAT(chain.members, SizeIs(2));
  planner.Remove(1);
  EXPECT_LE(Spread(CountsOf(planner).members), 3);
}

TEST(ChainPlanner, ADrainWithNowhereToGoIsStuckAndKeepsTheReplicas) {
  ChainPlanner planner(2);
  planner.Deal({1, 1}, 8);
  planner.Drain(0);
  Settle(&planner);
  EXPECT_EQ(planner.Stuck(), 8u);
  for (const Chain& chain : planner.chains()) EXPECT_THAT(chain.members, SizeIs(2));
  planner.Add(2, 1);
  Settle(&planner);
  EXPECT_EQ(planner.PlacesOn(0), 0u);
}

TEST(ChainPlanner, WeightsDecideWhereTheyAreKnown) {
  ChainPlanner planner(1);
  planner.Deal({1, 1}, 4);  // shards 0 and 2 on server 0
  ShardWeights weights;
  weights.member = {100, 1, 100, 1};
  weights.head = weights.member;
  weights.tolerance = 0.05;
  planner.Balance({weights});
  Settle(&planner);
  double on_first = 0;
  for (std::uint32_t shard = 0; shard < 4; ++shard) {
    if (planner.chains()[shard].members[0].server_rank == 0) on_first += weights.member[shard];
  }
  EXPECT_NEAR(on_first, 101, 1);
}

TEST(ChainPlanner, EmptyShardsAreSpreadByNumberAndNotMovedForTheirWeight) {
  ChainPlanner planner(2);
  planner.Deal({1, 1, 1}, 60);
  ShardLoads loads;
  proto::LoadReport report;
  for (std::uint32_t shard = 0; shard < 60; ++shard) {
    report.shards.push_back(
        {.shard = shard, .bytes = shard < 6 ? 1000u : shard % 3, .requests = 1});
  }
  loads.Take(0, report, 60);
  planner.Add(3, 1);
  planner.Balance(loads.Weights(BalanceBy::kBytes, 60, 2));
  Settle(&planner);
  std::map<std::uint32_t, int> heavy;
  for (std::uint32_t shard = 0; shard < 6; ++shard) {
    for (const ShardOwner& place : planner.chains()[shard].members) ++heavy[place.server_rank];
  }
  EXPECT_THAT(heavy, SizeIs(4));
  EXPECT_EQ(Spread(heavy), 0);
  EXPECT_LE(Spread(CountsOf(planner).members), 1);
  EXPECT_LE(Spread(CountsOf(planner).heads), 2);
  EXPECT_TRUE(planner.Settled());
}

TEST(ShardLoadsTest, AServersReportReplacesTheOneBefore) {
  ShardLoads loads;
  loads.Take(0, {.shards = {{.shard = 0, .bytes = 100}, {.shard = 1, .bytes = 10}}}, 2);
  EXPECT_EQ(loads.BytesOn(0), 110u);
  loads.Take(0, {.shards = {{.shard = 1, .bytes = 20}}}, 2);  // the other has moved away
  EXPECT_EQ(loads.BytesOn(0), 20u);
}

TEST(ChainPlanner, GoesOnFromItsState) {
  ChainPlanner planner(2);
  planner.Deal({1, 1, 1}, 12);
  planner.Add(3, 1);
  planner.Balance({});
  planner.Step();
  ChainPlanner other(2);
  other.Restore(planner.state());
  Settle(&planner);
  Settle(&other);
  EXPECT_EQ(planner.state(), other.state());
}

// ---- whatever happens, in whatever order ----

class History {
 public:
  explicit History(std::uint64_t seed)
      : random_(seed), replication_(1 + Draw(3)), planner_(replication_) {
    std::vector<std::uint32_t> threads(1 + Draw(5));
    for (std::uint32_t& count : threads) count = 1 + Draw(3);
    next_ = static_cast<std::uint32_t>(threads.size());
    planner_.Deal(threads, 1 + Draw(40));
    before_ = planner_.chains();
  }

  void Happen() {
    dead_.reset();
    before_ = planner_.chains();
    const ChainServers& servers = planner_.servers();
    switch (Draw(8)) {
      case 0:
        if (servers.size() > 1) planner_.Remove(*(dead_ = Someone()));
        break;
      case 1:
        if (servers.size() < 8) planner_.Add(next_++, 1 + Draw(3));
        if (Draw(2) == 0) planner_.Balance({Weights()});
        break;
      case 2:
        if (Draw(3) == 0) planner_.Drain(Someone());
        break;
      case 3:
        planner_.Balance({Weights()});
        break;
      default:
        for (int i = 0; i < 8; ++i) planner_.Ready(Draw(48), Someone());
        for (std::uint32_t shard = 0; shard < before_.size(); ++shard) {
          if (Draw(2) != 0) continue;
          for (std::uint32_t rank : Ranks(before_[shard].joining)) planner_.Ready(shard, rank);
        }
        planner_.Step();
    }
    Check();
  }

  void SettleAndCheck() {
    planner_.Balance({});
    before_ = planner_.chains();
    Settle(&planner_);
    EXPECT_TRUE(planner_.Settled());
    EXPECT_THAT(planner_.state().moves, IsEmpty());
    const auto usable = static_cast<std::size_t>(
        std::count_if(planner_.servers().begin(), planner_.servers().end(),
                      [](const auto& server) { return !server.second.draining; }));
    for (const Chain& chain : planner_.chains()) {
      if (chain.members.empty()) continue;
      EXPECT_GE(chain.members.size(), std::min<std::size_t>(replication_, usable));
      EXPECT_LE(chain.members.size(), replication_);
    }
    for (const auto& [rank, server] : planner_.servers()) {
      if (!server.draining || usable < replication_) continue;
      EXPECT_EQ(planner_.PlacesOn(rank), 0u);
    }
    if (usable >= replication_ && usable == planner_.servers().size()) CheckEven();
  }

 private:
  std::uint32_t Draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  std::uint32_t Someone() {
    auto server = planner_.servers().begin();
    std::advance(server, Draw(static_cast<std::uint32_t>(planner_.servers().size())));
    return server->first;
  }
  ShardWeights Weights() {
    ShardWeights weights;
    if (Draw(2) == 0) return weights;
    for (std::size_t shard = 0; shard < before_.size(); ++shard) {
      weights.member.push_back(1 + Draw(1000));
      weights.head.push_back(1 + Draw(1000));
    }
    weights.tolerance = 0.05;
    return weights;
  }

  void Check() {
    ASSERT_EQ(planner_.chains().size(), before_.size());
    for (std::uint32_t shard = 0; shard < before_.size(); ++shard) {
      CheckShape(planner_.chains()[shard]);
      CheckChange(before_[shard], planner_.chains()[shard]);
    }
  }
  void CheckShape(const Chain& chain) {
    std::set<std::uint32_t> ranks;
    for (const auto* places : {&chain.members, &chain.joining}) {
      for (const ShardOwner& place : *places) {
        EXPECT_TRUE(ranks.insert(place.server_rank).second) << "two on one server";
        ASSERT_TRUE(planner_.servers().contains(place.server_rank)) << "on a dead server";
        EXPECT_LT(place.thread, planner_.servers().at(place.server_rank).threads);
      }
    }
    EXPECT_LE(chain.joining.size(), 1u);
    EXPECT_LE(chain.members.size(), replication_ + 1);
    EXPECT_TRUE(!chain.members.empty() || chain.joining.empty());
  }
  // Members are dropped, and replicas with a complete state are appended; or two change places.
  void CheckChange(const Chain& before, const Chain& after) {
    std::vector<ShardOwner> survivors = before.members;
    std::erase_if(survivors, [&](const ShardOwner& p) { return p.server_rank == dead_; });
    if (survivors.size() == 2 && after.members.size() == 2 && after.members[0] == survivors[1] &&
        after.members[1] == survivors[0]) {
      return;
    }
    if (dead_.has_value()) {
      EXPECT_EQ(after.members, survivors);
      return;
    }
    std::vector<ShardOwner> pool = survivors;
    pool.insert(pool.end(), before.joining.begin(), before.joining.end());
    auto next = pool.begin();
    for (const ShardOwner& place : after.members) {
      next = std::find(next, pool.end(), place);
      ASSERT_NE(next, pool.end()) << "out of order, or a member that never got the state";
      ++next;
    }
    // No plan makes a chain shorter than it should be, nor drops all that were members.
    EXPECT_GE(after.members.size(), std::min<std::size_t>(survivors.size(), replication_));
    const bool kept = std::any_of(after.members.begin(), after.members.end(), [&](const auto& p) {
      return std::find(survivors.begin(), survivors.end(), p) != survivors.end();
    });
    EXPECT_TRUE(kept || survivors.empty());
  }
  void CheckEven() {
    double most = 0, least = 1e9;
    for (const auto& [rank, count] : CountsOf(planner_).members) {
      const double load = double(count) / planner_.servers().at(rank).threads;
      most = std::max(most, load);
      least = std::min(least, load);
    }
    const std::uint32_t threads = planner_.servers().begin()->second.threads;
    const bool alike = std::all_of(planner_.servers().begin(), planner_.servers().end(),
                                   [&](const auto& s) { return s.second.threads == threads; });
    // Where threads differ, chains on different servers may leave no choice.
    if (alike) {
      EXPECT_LE(most - least, 1.0 + 1e-6);
    } else if (planner_.servers().size() >= 3 * replication_) {
      EXPECT_LE(most - least, 3.0);
    }
  }

  std::mt19937_64 random_;
  const std::uint32_t replication_;
  ChainPlanner planner_;
  std::vector<Chain> before_;
  std::optional<std::uint32_t> dead_;
  std::uint32_t next_ = 0;
};

TEST(ChainPlanner, HoldsItsPromisesInRandomHistories) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    History history(seed);
    for (int step = 0; step < 60; ++step) history.Happen();
    history.SettleAndCheck();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace leeway::scheduler
