// The planner of chains: decides which servers keep each shard, in chains of replicas that are
// evenly spread, and how the chains change when servers die, join, are drained or carry unevenly.
// No network and no clock: its plans follow from the order of calls alone.
//
// A chain changes in two ways only: members are dropped, and a replica whose state transfer is
// complete is appended. So a member always has everything that its successors have, whichever
// server dies. (The two members of a chain may also change places while both live: the old head
// hands over first.)
#ifndef LEEWAY_SCHEDULER_CHAINS_CHAIN_PLANNER_H_
#define LEEWAY_SCHEDULER_CHAINS_CHAIN_PLANNER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "proto/messages/chain.h"
#include "scheduler/chains/loads.h"

namespace leeway::scheduler {

// State transfers that a server may send, or receive, at once: each holds frozen copies in memory.
inline constexpr std::uint32_t kTransfersPerServerMax = 8;
// Chains whose head changes at once: each stops a shard for a moment.
inline constexpr std::uint32_t kTurnsMax = 8;
inline constexpr std::uint32_t kShardsPerThread = 32;

// The heads: deals `num_shards` shards (0: kShardsPerThread a thread) to the servers' threads in
// turn: neighbouring shards lie on different servers. `threads`: how many each server has, by rank.
std::vector<proto::ShardOwner> DealShards(const std::vector<std::uint32_t>& threads,
                                          std::uint32_t num_shards);

class ChainPlanner {
 public:
  // The durable state: a planner to which it is restored goes on where the other one was.
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

  // Adds a new server, which has nothing yet; shards are moved to it step by step.
  void Add(std::uint32_t rank, std::uint32_t threads);
  // The server has gone: it goes off all chains at once, and replicas in its stead are begun.
  void Remove(std::uint32_t rank);
  // Moves everything away from the server. May be called again.
  void Drain(std::uint32_t rank);
  // Moves shards until the servers carry alike: by the first weights, then by the next, which
  // should weigh other shards than the ones before. The first also decide where replicas are begun.
  void Balance(std::vector<ShardWeights> weights);
  // These pairs of servers (the smaller rank first) cannot reach each other: from now on none
  // gets a state transfer from the other.
  void SetApart(std::set<std::pair<std::uint32_t, std::uint32_t>> pairs) {
    apart_ = std::move(pairs);
  }
  // Server `before` cannot reach its successor `behind`, which is a member or is joining: `behind`
  // goes off the chain. False: it is not the successor, and nothing has changed.
  bool Separate(std::uint32_t shard, std::uint32_t before, std::uint32_t behind);
  // The replica that is joining there has caught up. Ignored if there is none.
  void Ready(std::uint32_t shard, std::uint32_t rank);

  // Makes the next planned changes. To be called only when all servers have taken the last ones and
  // every handover has arrived. False: there is nothing to do now.
  bool Step();

  // True if nothing is under way and nothing is left to plan.
  bool Settled() const;
  // The number of chains that the server is in; 0: a draining server is empty.
  std::size_t PlacesOn(std::uint32_t rank) const;
  // True if a shard has no other member.
  bool IsLastOf(std::uint32_t rank) const;
  // The number of replicas on draining servers that no other server can take.
  std::size_t Stuck() const;
  std::size_t Joining() const;
  std::size_t Lost() const;

  const std::vector<proto::Chain>& chains() const { return state_.chains; }
  const ChainServers& servers() const { return state_.servers; }
  const State& state() const { return state_; }
  bool balancing() const { return state_.balancing; }

 private:
  class Transfers;  // the number of state transfers on each server

  std::size_t Usable() const;  // servers that may be given shards
  ChainLoads Loads(const ShardWeights& weights) const;
  bool TakeReady();
  bool DropSuperfluous();
  bool Drop(std::uint32_t shard, std::uint32_t rank);
  std::uint32_t Superfluous(std::uint32_t shard, const ChainLoads& loads) const;
  bool WantsReplica(const proto::Chain& chain) const;
  bool MayFeed(const proto::Chain& chain, std::uint32_t rank) const;
  bool Repair();
  bool StartTransfer(std::uint32_t shard, ChainLoads* loads, Transfers* transfers);
  bool BalanceBy(const ShardWeights& weights);
  bool BalanceMembers(const ShardWeights& weights);
  bool MoveOne(const ShardWeights& weights, ChainLoads* loads, Transfers* transfers);
  std::optional<std::uint32_t> BestMove(std::uint32_t from, std::uint32_t to, double least_gain,
                                        const ChainLoads& loads, const Transfers& transfers) const;
  void StartMove(std::uint32_t shard, std::uint32_t from, std::uint32_t to, ChainLoads* loads,
                 Transfers* transfers);
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
