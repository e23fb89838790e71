// The newest cluster map: which data threads keep which shard, and which nodes there are. Makes the
// next one when something changes, gives it its version and epoch, and has it published soon after.
//
// Owns the MapPublisher, which sends maps in the right order.
// Changes within one turn of the loop go out as one map. In large clusters maps of the same epoch,
// with changes of workers alone, are at most one a millisecond and node, since a map for each of
// many workers that leave in a row would be a message for each pair of nodes. Before the cluster is
// complete no map is published, as nobody could use it. Lives on the scheduler's loop.
#ifndef LEEWAY_SCHEDULER_MAPS_CLUSTER_MAPS_H_
#define LEEWAY_SCHEDULER_MAPS_CLUSTER_MAPS_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "proto/messages/chain.h"
#include "proto/messages/messages.h"
#include "runtime/loop/loop.h"
#include "runtime/loop/timer.h"
#include "scheduler/maps/map_publisher.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

// Between the versions of two maps. A restart alone makes the version one more, so that an old copy
// of the state does not come to versions that nodes have, however often it is started.
inline constexpr std::uint64_t kVersionStride = 100;

class ClusterMaps {
 public:
  // The parts of a map beside the members.
  class Source {
   public:
    virtual ~Source() = default;
    virtual bool running() const = 0;
    virtual const std::vector<proto::Chain>& Chains() const = 0;
    virtual std::vector<proto::CodecSwitch> Codecs() const = 0;
    virtual std::vector<proto::TableSettings> Settings() const = 0;
    // The newest map has that version.
    virtual void OnNewVersion(std::uint64_t version) = 0;
  };

  // All outlive it. `send` is called with maps for nodes.
  ClusterMaps(runtime::Loop* loop, MembershipTable* members, Source* source,
              absl::Duration resend_interval, MapPublisher::Send send);

  // Something that is in the map has changed: makes the next map, one version on. Its epoch is 0
  // until there are chains, and grows whenever they or the servers change. It is published with the
  // next PublishSoon.
  void Change();
  void PublishSoon();
  void ChangeAndPublish() {
    Change();
    PublishSoon();
  }
  void PublishNow();
  // Chains of the newest map have lost members: workers get it as soon as the servers that are left
  // in those chains have it, or after kUrgentPatience.
  void Hurry();
  // Goes on behind a map of that version and epoch.
  void Restore(std::uint64_t version, std::uint64_t epoch);

  const std::shared_ptr<const proto::ClusterMap>& newest() const { return newest_; }
  // The epoch in which the shard's chain changed last; 0: there is no such shard.
  std::uint64_t Since(std::uint32_t shard) const {
    return shard < since_.size() ? since_[shard] : 0;
  }
  // Ranks of the servers that are members of chains that the newest map has changed.
  const std::set<std::uint32_t>& concerned() const { return concerned_; }
  // The newest map has not been published yet.
  bool publish_pending() const { return publish_timer_.pending(); }
  // The newest map is published, and every server that counts has taken it.
  bool ServersHaveNewest() { return !publish_pending() && publisher_.ServersHaveIt(); }
  MapPublisher* publisher() { return &publisher_; }

 private:
  std::shared_ptr<proto::ClusterMap> MakeMap() const;
  void Take(std::shared_ptr<const proto::ClusterMap> map);
  absl::Time Now() const { return loop_->Now(); }

  runtime::Loop* const loop_;
  MembershipTable* const members_;
  Source* const source_;
  std::shared_ptr<const proto::ClusterMap> newest_ = std::make_shared<proto::ClusterMap>();
  std::vector<proto::Chain> chains_;  // of the newest map
  std::vector<std::uint64_t> since_;  // by shard
  std::set<std::uint32_t> concerned_;
  MapPublisher publisher_;
  std::uint64_t published_epoch_ = 0;
  absl::Time rest_until_ = absl::InfinitePast();  // before which no map goes out that can wait
  runtime::Timer publish_timer_, urgent_timer_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MAPS_CLUSTER_MAPS_H_
