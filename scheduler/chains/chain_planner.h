// Who keeps each shard: chains of replicas on different servers, evenly spread; what they become
// when servers die, join, drain or grow uneven. No network and no clock: what it does follows from
// what it is told, in that order.
//
// A chain changes in two ways only: members are dropped, and a replica that has been filled is
// appended. So a member always has everything that those behind it have, whoever dies when. (A
// chain of two may also be turned round while both live: the old head hands over first.)
#ifndef LEEWAY_SCHEDULER_CHAINS_CHAIN_PLANNER_H_
#define LEEWAY_SCHEDULER_CHAINS_CHAIN_PLANNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "proto/messages/chain.h"
#include "scheduler/chains/chain_loads.h"

namespace leeway::scheduler {

// Fills that a server may feed, or be fed by, at once: each holds frozen copies in memory.
inline constexpr std::uint32_t kFillsPerServerMax = 8;
// Chains turned round at once: each stops a shard for a moment.
inline constexpr std::uint32_t kTurnsMax = 8;

class ChainPlanner {
 public:
  // What has to be kept for a planner to go on where another one was.
  struct State {
    std::vector<proto::Chain> chains;              // by shard
    ChainServers servers;                          // by rank
    std::map<std::uint32_t, std::uint32_t> moves;  // shard → rank of the server it leaves
    bool balancing = false;
    friend bool operator==(const State&, const State&) = default;
  };

  explicit ChainPlanner(std::uint32_t replication) : replication_(replication) {}
  void Restore(State state) { state_ = std::move(state); }

  // Chains for `num_shards` shards on servers with so many threads, by rank.
  void Deal(const std::vector<std::uint32_t>& threads, std::uint32_t num_shards);

  // A new server, which has nothing yet; shards are moved to it step by step.
  void Add(std::uint32_t rank, std::uint32_t threads);
  // It is no more: at once out of all chains, and replicas in its stead are begun.
  void Remove(std::uint32_t rank);
  // Everything is to move away from it. It may be said again.
  void Drain(std::uint32_t rank);
  // Shards are moved until the servers carry alike: by the first weights, then by the next, which
  // should not weigh what the ones before did. The first also decide where replicas are begun.
  void Balance(std::vector<ShardWeights> weights);
  // These pairs of servers (the smaller rank first) cannot reach each other: from now on none is
  // filled from the other.
  void SetApart(std::set<std::pair<std::uint32_t, std::uint32_t>> pairs) {
    apart_ = std::move(pairs);
  }
  // Server `before` cannot reach `behind`, which is next to it in the chain, as a member or to
  // become one: that one goes off it. False: it is not next to it, and nothing has changed.
  bool Separate(std::uint32_t shard, std::uint32_t before, std::uint32_t behind);
  // What is being filled there has caught up. Anything else is ignored.
  void Ready(std::uint32_t shard, std::uint32_t rank);

  // The next planned changes; to be made only when everyone has taken the last ones and all that
  // was handed over has arrived. False: there is nothing to do now.
  bool Step();

  // Nothing is under way, and nothing is left to plan.
  bool Settled() const;
  // How many places of the server's are in chains; 0: a draining server is empty.
  std::size_t PlacesOn(std::uint32_t rank) const;
  // Whether a shard has no other member.
  bool IsLastOf(std::uint32_t rank) const;
  // Places that a chain has on a server that drains, with nowhere to go.
  std::size_t Stuck() const;
  std::size_t Filling() const;
  std::size_t Lost() const;

  const std::vector<proto::Chain>& chains() const { return state_.chains; }
  const ChainServers& servers() const { return state_.servers; }
  const State& state() const { return state_; }
  bool balancing() const { return state_.balancing; }

 private:
  class Fills;  // how many there are on each server

  std::size_t Usable() const;  // servers that may be given shards
  ChainLoads Loads(const ShardWeights& weights) const;
  bool TakeReady();
  bool DropSuperfluous();
  bool Drop(std::uint32_t shard, std::uint32_t rank);
  std::uint32_t Superfluous(std::uint32_t shard, const ChainLoads& loads) const;
  bool WantsReplica(const proto::Chain& chain) const;
  bool MayFeed(const proto::Chain& chain, std::uint32_t rank) const;
  bool Repair();
  bool StartFill(std::uint32_t shard, ChainLoads* loads, Fills* fills);
  bool BalanceBy(const ShardWeights& weights);
  bool BalanceMembers(const ShardWeights& weights);
  bool MoveOne(const ShardWeights& weights, ChainLoads* loads, Fills* fills);
  std::optional<std::uint32_t> BestMove(std::uint32_t from, std::uint32_t to, double least_gain,
                                        const ChainLoads& loads, const Fills& fills) const;
  void StartMove(std::uint32_t shard, std::uint32_t from, std::uint32_t to, ChainLoads* loads,
                 Fills* fills);
  bool BalanceHeads(const ShardWeights& weights);
  bool TurnOne(const ShardWeights& weights, ChainLoads* loads);

  const std::uint32_t replication_;
  State state_;
  ShardWeights weights_;  // by which replicas are placed
  std::vector<ShardWeights>
      balance_;  // by which it is still to be balanced, from the last to the first
  std::set<std::pair<std::uint32_t, std::uint32_t>> ready_;  // shard, rank
  std::set<std::pair<std::uint32_t, std::uint32_t>> apart_;  // ranks
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_CHAIN_PLANNER_H_
