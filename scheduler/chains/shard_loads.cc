#include "scheduler/chains/shard_loads.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
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
