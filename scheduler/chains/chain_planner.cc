#include "scheduler/chains/chain_planner.h"

#include <algorithm>
#include <tuple>

#include "proto/messages/limits.h"

namespace leeway::scheduler {

using proto::Chain;
using proto::ShardOwner;

namespace {

// Loads are sums of doubles: smaller differences are none.
constexpr double kNothing = 1e-9;

// The server of a shard's next replica: the least loaded one that is not in its chain. Among
// equals, the one with the fewest replicas of this head's shards, so that all the others get as
// many shards of a head that dies; then the next by rank.
std::uint32_t ChooseReplica(const Chain& chain, const ChainServers& servers,
                            const ChainLoads& loads,
                            const std::map<std::pair<std::uint32_t, std::uint32_t>, int>& pairs) {
  const std::uint32_t head = chain.members.front().server_rank;
  const auto count = static_cast<std::uint32_t>(servers.size());
  using Score = std::tuple<double, int, std::uint32_t>;
  std::pair<Score, std::uint32_t> best;
  bool found = false;
  for (const auto& [rank, server] : servers) {
    if (IsOn(chain, rank)) continue;
    const auto pair = pairs.find({head, rank});
    const Score score(loads.Of(rank), pair == pairs.end() ? 0 : pair->second,
                      (rank + count - head) % count);
    if (!found || score < best.first) best = {score, rank};
    found = true;
  }
  return best.second;
}

}  // namespace

// A state transfer loads the server that sends it, the last member, and the one that receives it.
class ChainPlanner::Transfers {
 public:
  explicit Transfers(const std::vector<Chain>& chains) {
    for (const Chain& chain : chains) {
      for (const ShardOwner& place : chain.joining) Add(chain, place.server_rank);
    }
  }
  void Add(const Chain& chain, std::uint32_t to) {
    ++busy_[to];
    ++busy_[chain.members.back().server_rank];
  }
  bool MayFeed(const Chain& chain) const { return Free(chain.members.back().server_rank); }
  bool Free(std::uint32_t rank) const {
    const auto busy = busy_.find(rank);
    return busy == busy_.end() || busy->second < kTransfersPerServerMax;
  }

 private:
  std::map<std::uint32_t, std::uint32_t> busy_;
};

// ---- the first chains ----

std::vector<ShardOwner> DealShards(const std::vector<std::uint32_t>& threads,
                                   std::uint32_t num_shards) {
  std::vector<ShardOwner> turn;
  const std::uint32_t most =
      threads.empty() ? 0 : *std::max_element(threads.begin(), threads.end());
  for (std::uint32_t thread = 0; thread < most; ++thread) {
    for (std::uint32_t rank = 0; rank < threads.size(); ++rank) {
      if (thread < threads[rank]) turn.push_back({rank, thread});
    }
  }
  if (turn.empty()) return {};
  const std::uint64_t wanted =
      num_shards != 0 ? num_shards : std::uint64_t{kShardsPerThread} * turn.size();
  std::vector<ShardOwner> owners(std::min<std::uint64_t>(wanted, proto::kShardsMax));
  for (std::size_t shard = 0; shard < owners.size(); ++shard) {
    owners[shard] = turn[shard % turn.size()];
  }
  return owners;
}

void ChainPlanner::Deal(const std::vector<std::uint32_t>& threads, std::uint32_t num_shards) {
  state_ = State();
  for (std::uint32_t rank = 0; rank < threads.size(); ++rank) Add(rank, threads[rank]);
  ChainLoads loads(state_.servers, weights_);
  std::vector<Chain>& chains = state_.chains;
  for (const ShardOwner& head : DealShards(threads, num_shards)) {
    loads.AddMember(static_cast<std::uint32_t>(chains.size()), head);
    chains.push_back({.members = {head}, .joining = {}});
  }
  const std::size_t length = std::min<std::size_t>(replication_, threads.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> pairs;  // head, replica → how many
  for (std::size_t place = 1; place < length; ++place) {
    for (std::uint32_t shard = 0; shard < chains.size(); ++shard) {
      const std::uint32_t rank = ChooseReplica(chains[shard], state_.servers, loads, pairs);
      chains[shard].members.push_back(loads.PlaceOn(rank));
      loads.AddMember(shard, chains[shard].members.back());
      ++pairs[{chains[shard].members.front().server_rank, rank}];
    }
  }
}

// ---- servers come and go ----

void ChainPlanner::Add(std::uint32_t rank, std::uint32_t threads) {
  state_.servers[rank] = {.threads = threads, .draining = false};
}

void ChainPlanner::Remove(std::uint32_t rank) {
  state_.servers.erase(rank);
  for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
    Drop(shard, rank);
  }
  Repair();
}

void ChainPlanner::Drain(std::uint32_t rank) {
  const auto server = state_.servers.find(rank);
  if (server == state_.servers.end()) return;
  server->second.draining = true;
  // State transfers to the server are begun anew elsewhere.
  for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
    std::vector<ShardOwner>& joining = state_.chains[shard].joining;
    if (!IsOn(joining, rank)) continue;
    joining.clear();
    ready_.erase({shard, rank});
    state_.moves.erase(shard);
  }
}

void ChainPlanner::Balance(std::vector<ShardWeights> weights) {
  weights_ = weights.empty() ? ShardWeights() : weights.front();
  balance_.assign(weights.rbegin(), weights.rend());
  state_.balancing = true;
}

void ChainPlanner::Ready(std::uint32_t shard, std::uint32_t rank) {
  if (shard < state_.chains.size() && IsOn(state_.chains[shard].joining, rank)) {
    ready_.insert({shard, rank});
  }
}

// Takes the server off the chain, as a member or a joining replica.
bool ChainPlanner::Drop(std::uint32_t shard, std::uint32_t rank) {
  Chain& chain = state_.chains[shard];
  const auto there = [rank](const ShardOwner& place) { return place.server_rank == rank; };
  const bool was_member = std::erase_if(chain.members, there) > 0;
  const bool was_joining = std::erase_if(chain.joining, there) > 0;
  if (!was_member && !was_joining) return false;
  // A joining replica has to report again, for the chain as it is now: its state may have come from
  // the member that is gone.
  std::erase_if(ready_, [shard](const auto& ready) { return ready.first == shard; });
  if (const auto move = state_.moves.find(shard);
      move != state_.moves.end() && (was_joining || move->second == rank)) {
    state_.moves.erase(move);
  }
  if (chain.members.empty()) chain.joining.clear();  // lost: nobody is left that has the state
  return true;
}

// The predecessor has all that the dropped one has, so a member that has everything is left.
bool ChainPlanner::Separate(std::uint32_t shard, std::uint32_t before, std::uint32_t behind) {
  if (shard >= state_.chains.size()) return false;
  const Chain& chain = state_.chains[shard];
  std::vector<ShardOwner> row = chain.members;
  row.insert(row.end(), chain.joining.begin(), chain.joining.end());
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (row[i - 1].server_rank == before && row[i].server_rank == behind) {
      return Drop(shard, behind);
    }
  }
  return false;
}

// The last member sends the state, and is the predecessor then.
bool ChainPlanner::MayFeed(const Chain& chain, std::uint32_t rank) const {
  return !apart_.contains(std::minmax(chain.members.back().server_rank, rank));
}

// ---- planned changes ----

bool ChainPlanner::Step() {
  // A member is superfluous only when all nodes know the others to be members.
  bool changed = DropSuperfluous();
  changed = TakeReady() || changed;
  changed = Repair() || changed;
  if (!state_.balancing) return changed;
  if (balance_.empty()) balance_.push_back(weights_);  // after a restart
  changed = BalanceMembers(balance_.back()) || changed;
  if (changed || Joining() > 0) return changed;
  if (BalanceHeads(balance_.back())) return true;
  balance_.pop_back();
  if (!balance_.empty()) return Step();
  state_.balancing = false;
  return false;
}

bool ChainPlanner::TakeReady() {
  for (const auto& [shard, rank] : ready_) {
    Chain& chain = state_.chains[shard];
    chain.members.push_back(chain.joining.front());
    chain.joining.clear();
  }
  return !std::exchange(ready_, {}).empty();
}

bool ChainPlanner::DropSuperfluous() {
  std::optional<ChainLoads> loads;
  bool changed = false;
  for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
    const Chain& chain = state_.chains[shard];
    if (chain.members.size() <= replication_) {
      // A server has died meanwhile: the move has nothing to drop any more.
      if (chain.joining.empty()) state_.moves.erase(shard);
      continue;
    }
    if (!loads.has_value()) loads.emplace(Loads(weights_));
    changed = Drop(shard, Superfluous(shard, *loads)) || changed;
    state_.moves.erase(shard);
  }
  return changed;
}

// The rank of the member that a chain with one too many drops.
std::uint32_t ChainPlanner::Superfluous(std::uint32_t shard, const ChainLoads& loads) const {
  const std::vector<ShardOwner>& members = state_.chains[shard].members;
  std::uint32_t most = members.back().server_rank;
  for (const ShardOwner& place : members) {
    if (state_.servers.at(place.server_rank).draining) return place.server_rank;
    if (loads.Of(place.server_rank) > loads.Of(most)) most = place.server_rank;
  }
  const auto move = state_.moves.find(shard);
  return move != state_.moves.end() && IsOn(members, move->second) ? move->second : most;
}

bool ChainPlanner::WantsReplica(const Chain& chain) const {
  if (chain.members.empty() || !chain.joining.empty()) return false;
  if (chain.members.size() < replication_) return true;
  return chain.members.size() == replication_ &&
         std::any_of(chain.members.begin(), chain.members.end(), [this](const ShardOwner& place) {
           return state_.servers.at(place.server_rank).draining;
         });
}

bool ChainPlanner::Repair() {
  std::optional<ChainLoads> loads;
  std::optional<Transfers> transfers;
  bool changed = false;
  // Chains with the fewest members come first.
  for (std::size_t members = 1; members <= replication_; ++members) {
    for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
      const Chain& chain = state_.chains[shard];
      if (chain.members.size() != members || !WantsReplica(chain)) continue;
      if (!loads.has_value()) loads.emplace(Loads(weights_));
      if (!transfers.has_value()) transfers.emplace(state_.chains);
      changed = StartTransfer(shard, &*loads, &*transfers) || changed;
    }
  }
  return changed;
}

// Begins a state transfer to the least loaded server that is not in the chain.
bool ChainPlanner::StartTransfer(std::uint32_t shard, ChainLoads* loads, Transfers* transfers) {
  Chain& chain = state_.chains[shard];
  if (!transfers->MayFeed(chain)) return false;
  for (std::uint32_t rank : loads->LeastFirst()) {
    if (IsOn(chain, rank) || !transfers->Free(rank) || !MayFeed(chain, rank)) continue;
    chain.joining.push_back(loads->PlaceOn(rank));
    loads->AddMember(shard, chain.joining.back());
    transfers->Add(chain, rank);
    return true;
  }
  return false;
}

// ---- evening out ----

bool ChainPlanner::BalanceMembers(const ShardWeights& weights) {
  ChainLoads loads = Loads(weights);
  Transfers transfers(state_.chains);
  bool changed = false;
  while (MoveOne(weights, &loads, &transfers)) changed = true;
  return changed;
}

bool ChainPlanner::MoveOne(const ShardWeights& weights, ChainLoads* loads, Transfers* transfers) {
  const std::vector<std::uint32_t> ranks = loads->LeastFirst();
  for (auto from = ranks.rbegin(); from != ranks.rend(); ++from) {
    const double high = loads->Of(*from);
    for (const std::uint32_t to : ranks) {
      if (high - loads->Of(to) <= weights.tolerance * high) break;
      if (!transfers->Free(to)) continue;
      const std::optional<std::uint32_t> shard =
          BestMove(*from, to, weights.least_gain, *loads, *transfers);
      if (!shard.has_value()) continue;
      StartMove(*shard, *from, to, loads, transfers);
      return true;
    }
  }
  return false;
}

// The shard whose move makes the two servers most alike; among equals, the one whose head then is
// on the server with fewer heads.
std::optional<std::uint32_t> ChainPlanner::BestMove(std::uint32_t from, std::uint32_t to,
                                                    double least_gain, const ChainLoads& loads,
                                                    const Transfers& transfers) const {
  const std::size_t length = std::min<std::size_t>(replication_, Usable());
  std::optional<std::uint32_t> best;
  std::pair<double, double> best_score;
  for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
    const Chain& chain = state_.chains[shard];
    if (chain.members.size() != length || !chain.joining.empty() || IsOn(chain.members, to) ||
        !IsOn(chain.members, from) || state_.moves.contains(shard) || !transfers.MayFeed(chain) ||
        !MayFeed(chain, to)) {
      continue;
    }
    const double after = std::max(loads.With(shard, from, -1), loads.With(shard, to, +1));
    if (after >= loads.Of(from) * (1 - kNothing) - least_gain) continue;
    double heads = 0;
    if (chain.members.front().server_rank == from) {
      heads = loads.HeadsOf(length > 1 ? chain.members[1].server_rank : to) - loads.HeadsOf(from);
    }
    const std::pair<double, double> score(after, heads);
    if (best.has_value() && score >= best_score) continue;
    best = shard;
    best_score = score;
  }
  return best;
}

void ChainPlanner::StartMove(std::uint32_t shard, std::uint32_t from, std::uint32_t to,
                             ChainLoads* loads, Transfers* transfers) {
  Chain& chain = state_.chains[shard];
  const auto leaving =
      std::find_if(chain.members.begin(), chain.members.end(),
                   [from](const ShardOwner& place) { return place.server_rank == from; });
  state_.moves[shard] = from;
  loads->RemoveMember(shard, *leaving);
  if (leaving == chain.members.begin()) {
    loads->RemoveHead(shard, from);
    loads->AddHead(shard, chain.members.size() > 1 ? chain.members[1].server_rank : to);
  }
  chain.joining.push_back(loads->PlaceOn(to));
  loads->AddMember(shard, chain.joining.back());
  transfers->Add(chain, to);
}

bool ChainPlanner::BalanceHeads(const ShardWeights& weights) {
  ChainLoads loads = Loads(weights);
  std::uint32_t turns = 0;
  while (turns < kTurnsMax && TurnOne(weights, &loads)) ++turns;
  return turns > 0;
}

bool ChainPlanner::TurnOne(const ShardWeights& weights, ChainLoads* loads) {
  std::optional<std::uint32_t> best;
  double best_gain = kNothing + weights.least_gain;
  for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
    const Chain& chain = state_.chains[shard];
    if (chain.members.size() != 2) continue;
    const std::uint32_t head = chain.members[0].server_rank, tail = chain.members[1].server_rank;
    const double before = loads->HeadsOf(head);
    const double gain =
        before - std::max(loads->HeadsWith(shard, head, -1), loads->HeadsWith(shard, tail, +1));
    if (gain <= best_gain || before - loads->HeadsOf(tail) <= weights.tolerance * before) continue;
    best = shard;
    best_gain = gain;
  }
  if (!best.has_value()) return false;
  std::vector<ShardOwner>& members = state_.chains[*best].members;
  loads->RemoveHead(*best, members[0].server_rank);
  std::swap(members[0], members[1]);
  loads->AddHead(*best, members[0].server_rank);
  return true;
}

// ---- questions ----

ChainLoads ChainPlanner::Loads(const ShardWeights& weights) const {
  ChainLoads loads(state_.servers, weights);
  for (std::uint32_t shard = 0; shard < state_.chains.size(); ++shard) {
    const Chain& chain = state_.chains[shard];
    if (chain.members.empty()) continue;
    const auto move = state_.moves.find(shard);
    const auto leaves = [&](const ShardOwner& place) {
      return move != state_.moves.end() && move->second == place.server_rank;
    };
    std::vector<ShardOwner> staying;
    for (const ShardOwner& place : chain.members) {
      if (!leaves(place)) staying.push_back(place);
    }
    staying.insert(staying.end(), chain.joining.begin(), chain.joining.end());
    for (const ShardOwner& place : staying) loads.AddMember(shard, place);
    if (!staying.empty()) loads.AddHead(shard, staying.front().server_rank);
  }
  return loads;
}

std::size_t ChainPlanner::Usable() const {
  return std::count_if(state_.servers.begin(), state_.servers.end(),
                       [](const auto& server) { return !server.second.draining; });
}

bool ChainPlanner::Settled() const {
  if (state_.balancing || !state_.moves.empty() || !ready_.empty()) return false;
  ChainPlanner trial = *this;
  return Joining() == 0 && !trial.Step();
}

std::size_t ChainPlanner::PlacesOn(std::uint32_t rank) const {
  return std::count_if(state_.chains.begin(), state_.chains.end(),
                       [rank](const Chain& chain) { return IsOn(chain, rank); });
}

bool ChainPlanner::IsLastOf(std::uint32_t rank) const {
  return std::ranges::any_of(state_.chains, [rank](const Chain& chain) {
    return chain.members.size() == 1 && chain.members[0].server_rank == rank;
  });
}

std::size_t ChainPlanner::Stuck() const {
  std::size_t stuck = 0;
  for (const Chain& chain : state_.chains) {
    if (!WantsReplica(chain)) continue;
    const bool room = std::any_of(
        state_.servers.begin(), state_.servers.end(),
        [&](const auto& server) { return !server.second.draining && !IsOn(chain, server.first); });
    if (room) continue;
    stuck += std::count_if(chain.members.begin(), chain.members.end(), [&](const ShardOwner& p) {
      return state_.servers.at(p.server_rank).draining;
    });
  }
  return stuck;
}

std::size_t ChainPlanner::Joining() const {
  return std::count_if(state_.chains.begin(), state_.chains.end(),
                       [](const Chain& chain) { return !chain.joining.empty(); });
}

std::size_t ChainPlanner::Lost() const {
  return std::count_if(state_.chains.begin(), state_.chains.end(),
                       [](const Chain& chain) { return chain.members.empty(); });
}

}  // namespace leeway::scheduler
