// The reports of servers that cannot reach each other although both reach the scheduler: takes the
// unreachable one off the chain, and keeps the pair apart for a while (ApartPairs).
//
// A report counts only for what its server sends itself: to its successor in a chain, to a replica
// that it feeds, or, as the head before, to the new head in a handover. Belongs to the
// ChainController; lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_CHAINS_LINK_REPORTS_H_
#define LEEWAY_SCHEDULER_CHAINS_LINK_REPORTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "scheduler/chains/chain_planner.h"
#include "scheduler/maps/cluster_maps.h"
#include "scheduler/members/cluster_life.h"
#include "scheduler/members/membership_table.h"
#include "scheduler/members/node_sender.h"

namespace leeway::scheduler {

class ChainController;

// Pairs that are kept at once; of more, those are dropped that would be forgotten first.
inline constexpr std::size_t kApartPairsMax = 1024;

// The pairs of servers that cannot reach each other although both reach the scheduler, as one of
// them has reported. No report says that they can again: a pair is forgotten after a while and then
// tried, and if it is reported again soon, it is kept for twice as long. At most kApartPairsMax.
class ApartPairs {
 public:
  using Pair = std::pair<std::uint32_t, std::uint32_t>;  // ranks, the smaller one first

  // A pair is kept for `first`, then for up to `longest`.
  ApartPairs(absl::Duration first, absl::Duration longest) : first_(first), longest_(longest) {}

  static Pair Of(std::uint32_t one, std::uint32_t other) { return std::minmax(one, other); }

  // The two have been reported to be apart. Returns for how long that is kept; zero if it is kept
  // already.
  absl::Duration Note(std::uint32_t one, std::uint32_t other, absl::Time now);
  // The server has gone.
  void Forget(std::uint32_t rank);
  // True if a pair is not apart any more.
  bool Expire(absl::Time now);

  const std::set<Pair>& apart() const { return apart_; }

 private:
  struct Entry {
    absl::Duration span;
    absl::Time until;
  };

  const absl::Duration first_, longest_;
  std::map<Pair, Entry> entries_;  // also of pairs that were apart until lately
  std::set<Pair> apart_;
};

class LinkReports {
 public:
  // The objects that it uses; all outlive it.
  struct Parts {
    const Config* config;
    runtime::Loop* loop;
    MembershipTable* members;
    NodeSender* sender;
    ClusterMaps* maps;
    ClusterLife* life;
    ChainPlanner* planner;
    ChainController* chains;
  };
  explicit LinkReports(const Parts& parts);

  void OnReport(const Node& server, const proto::LinkReport& report);
  void ServerGone(std::uint32_t rank);
  // To be called often: pairs that were kept apart long enough are tried again.
  void Expire();

 private:
  struct HandoverReport {  // the latest of a shard
    absl::Time at = absl::InfinitePast();
    std::uint32_t new_head = 0;  // node id
  };

  const Node* OtherEnd(const Node& server, const proto::LinkReport& report) const;
  bool HeardBetweenReports(std::uint32_t shard, const Node& other);
  void SeparatePair(const Node& server, const Node& other, const proto::LinkReport& report);
  absl::Time Now() const { return parts_.loop->Now(); }

  const Parts parts_;
  ApartPairs apart_;
  std::map<std::uint32_t, HandoverReport> handover_reports_;  // by shard
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_CHAINS_LINK_REPORTS_H_
