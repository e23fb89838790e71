#include "scheduler/shard_loads.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace leeway::scheduler {
namespace {

// Even what is empty weighs something, so that it is spread as well.
constexpr double kLeastShare = 0.01;  // of the mean
// Shards are not moved for less.
constexpr double kTolerance = 0.05;

void AddLeast(std::vector<double>* weights) {
  const double sum = std::accumulate(weights->begin(), weights->end(), 0.0);
  const double least = sum > 0 ? sum / weights->size() * kLeastShare : 1;
  for (double& weight : *weights) weight += least;
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

ShardWeights ShardLoads::Weights(BalanceBy by, std::uint32_t num_shards,
                                 std::uint32_t replication) const {
  ShardWeights weights;
  if (by == BalanceBy::kCount) return weights;
  std::vector<double> bytes(num_shards), requests(num_shards);
  for (const auto& [rank, shards] : reports_) {
    for (const auto& [shard, load] : shards) {
      bytes[shard] = std::max(bytes[shard], static_cast<double>(load.bytes));
      requests[shard] = std::max(requests[shard], static_cast<double>(load.requests));
    }
  }
  AddLeast(&bytes);
  AddLeast(&requests);
  const bool by_requests = by == BalanceBy::kRequests;
  weights.head = by_requests ? requests : bytes;
  // A shard's requests go to its head; replicas are weighed by what they hold.
  weights.member = by_requests && replication == 1 ? requests : bytes;
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  // Where all are alike, they can be dealt to the last one.
  if (by_requests || num_shards == 0 || *least < *most) weights.tolerance = kTolerance;
  return weights;
}

std::uint64_t ShardLoads::BytesOn(std::uint32_t rank) const {
  const auto report = reports_.find(rank);
  if (report == reports_.end()) return 0;
  std::uint64_t bytes = 0;
  for (const auto& [shard, load] : report->second) bytes += load.bytes;
  return bytes;
}

}  // namespace leeway::scheduler
