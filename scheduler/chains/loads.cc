#include "scheduler/chains/loads.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace leeway::scheduler {
namespace {

// Shards are not moved for smaller differences, as a share of a server's load.
constexpr double kTolerance = 0.05;
// A shard below this share of the mean is light, and a smaller gain is not worth a move.
constexpr double kLight = 0.1;

double MeanOf(const std::vector<double>& weights) {
  if (weights.empty()) return 0;
  return std::accumulate(weights.begin(), weights.end(), 0.0) / static_cast<double>(weights.size());
}

// The weight 1 for light shards, 0 for the rest.
std::vector<double> LightOnes(const std::vector<double>& weights) {
  std::vector<double> light;
  for (const double weight : weights) light.push_back(weight <= MeanOf(weights) * kLight ? 1 : 0);
  return light;
}

}  // namespace

ChainLoads::ChainLoads(const ChainServers& servers, const ShardWeights& weights)
    : weights_(weights) {
  for (const auto& [rank, server] : servers) {
    servers_[rank].threads.resize(std::max<std::uint32_t>(1, server.threads));
    if (!server.draining) usable_.push_back(rank);
  }
}

void ChainLoads::AddMember(std::uint32_t shard, const proto::ShardOwner& place) {
  Server& server = servers_.at(place.server_rank);
  server.members += weights_.Member(shard);
  server.threads[place.thread] += weights_.Member(shard);
}

void ChainLoads::RemoveMember(std::uint32_t shard, const proto::ShardOwner& place) {
  Server& server = servers_.at(place.server_rank);
  server.members -= weights_.Member(shard);
  server.threads[place.thread] -= weights_.Member(shard);
}

void ChainLoads::AddHead(std::uint32_t shard, std::uint32_t rank) {
  servers_.at(rank).heads += weights_.Head(shard);
}

void ChainLoads::RemoveHead(std::uint32_t shard, std::uint32_t rank) {
  servers_.at(rank).heads -= weights_.Head(shard);
}

double ChainLoads::With(std::uint32_t shard, std::uint32_t rank, int sign) const {
  return (servers_.at(rank).members + sign * weights_.Member(shard)) / Threads(rank);
}

double ChainLoads::HeadsWith(std::uint32_t shard, std::uint32_t rank, int sign) const {
  return (servers_.at(rank).heads + sign * weights_.Head(shard)) / Threads(rank);
}

std::vector<std::uint32_t> ChainLoads::LeastFirst() const {
  std::vector<std::uint32_t> ranks = usable_;
  std::stable_sort(ranks.begin(), ranks.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return Of(a) < Of(b); });
  return ranks;
}

proto::ShardOwner ChainLoads::PlaceOn(std::uint32_t rank) const {
  const std::vector<double>& threads = servers_.at(rank).threads;
  const auto least = std::min_element(threads.begin(), threads.end());
  return {rank, static_cast<std::uint32_t>(least - threads.begin())};
}

bool IsOn(const std::vector<proto::ShardOwner>& places, std::uint32_t rank) {
  return std::any_of(places.begin(), places.end(),
                     [rank](const proto::ShardOwner& place) { return place.server_rank == rank; });
}

bool IsOn(const proto::Chain& chain, std::uint32_t rank) {
  return IsOn(chain.members, rank) || IsOn(chain.joining, rank);
}

absl::StatusOr<BalanceBy> ParseBalanceBy(absl::string_view text) {
  if (text == "count") return BalanceBy::kCount;
  if (text == "bytes") return BalanceBy::kBytes;
  if (text == "requests") return BalanceBy::kRequests;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot balance by '", text, "': there are bytes, requests and count"));
}

void ShardLoads::Take(std::uint32_t rank, const proto::LoadReport& report,
                      std::uint32_t num_shards) {
  auto& shards = reports_[rank];
  shards.clear();
  for (const proto::ShardLoad& load : report.shards) {
    if (load.shard < num_shards) shards[load.shard] = load;
  }
}

std::vector<ShardWeights> ShardLoads::Weights(BalanceBy by, std::uint32_t num_shards,
                                              std::uint32_t replication) const {
  if (by == BalanceBy::kCount) return {ShardWeights()};
  std::vector<double> bytes(num_shards), requests(num_shards);
  for (const auto& [rank, shards] : reports_) {
    for (const auto& [shard, load] : shards) {
      bytes[shard] = std::max(bytes[shard], static_cast<double>(load.bytes));
      requests[shard] = std::max(requests[shard], static_cast<double>(load.requests));
    }
  }
  // A shard's requests go to its head; replicas are weighed by their bytes.
  const bool by_requests = by == BalanceBy::kRequests;
  ShardWeights heavy;
  heavy.head = by_requests ? requests : bytes;
  heavy.member = by_requests && replication == 1 ? requests : bytes;
  const double mean = MeanOf(heavy.member);
  if (mean == 0) return {ShardWeights()};
  heavy.least_gain = mean * kLight;
  // Shards of equal weight can be dealt evenly to the last one.
  const auto [least, most] = std::minmax_element(heavy.member.begin(), heavy.member.end());
  if (*least < *most) heavy.tolerance = kTolerance;
  ShardWeights light;
  light.member = LightOnes(heavy.member);
  light.head = LightOnes(heavy.head);
  return {heavy, light};
}

std::uint64_t ShardLoads::BytesOn(std::uint32_t rank) const {
  const auto report = reports_.find(rank);
  if (report == reports_.end()) return 0;
  std::uint64_t bytes = 0;
  for (const auto& [shard, load] : report->second) bytes += load.bytes;
  return bytes;
}

}  // namespace leeway::scheduler
