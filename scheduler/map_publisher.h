// Who gets the newest map when: servers first, and workers once every living server has it, so
// that a worker never knows more than the server it speaks to.
#ifndef LEEWAY_SCHEDULER_MAP_PUBLISHER_H_
#define LEEWAY_SCHEDULER_MAP_PUBLISHER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/time/time.h"
#include "proto/messages.h"
#include "scheduler/membership_table.h"

namespace leeway::scheduler {

class MapPublisher {
 public:
  using Send = std::function<void(const Node& node, const proto::ClusterMap& map)>;
  // What a node has not acknowledged is sent again after `resend_interval`, which doubles up to
  // sixteenfold, since a large map to a slow node must not become a flood.
  MapPublisher(const MembershipTable* members, absl::Duration resend_interval, Send send);

  void Publish(std::shared_ptr<const proto::ClusterMap> map, absl::Time now);
  void OnAck(const Node& node, std::uint64_t version, absl::Time now);
  // The node has connected anew: what it was sent may be lost.
  void OnRejoin(const Node& node, absl::Time now);
  void Resend(absl::Time now);

 private:
  struct Progress {
    std::uint64_t acknowledged = 0;  // version
    std::uint64_t sent = 0;          // version
    absl::Time resend_at = absl::InfiniteFuture();
    absl::Duration interval;
  };

  bool Due(const Node& node);  // may have the map, and has not acknowledged it
  void SendTo(const Node& node, absl::Time now);
  bool ServersHaveIt();
  void Advance(absl::Time now);

  const MembershipTable* const members_;
  const absl::Duration resend_interval_;
  const Send send_;
  std::shared_ptr<const proto::ClusterMap> map_;
  std::map<std::uint32_t, Progress> progress_;  // by node id
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MAP_PUBLISHER_H_
