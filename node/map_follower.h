// The filter of the scheduler's maps and NodeDown messages: passes on each newer map and each end
// of a node once, however the network has lost, repeated or reordered them. Lives on the node's
// loop.
#ifndef LEEWAY_NODE_MAP_FOLLOWER_H_
#define LEEWAY_NODE_MAP_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "proto/messages/messages.h"

namespace leeway::node {

class MapFollower {
 public:
  // True if the map is newer than the newest one; then it becomes the newest.
  bool Take(std::shared_ptr<const proto::ClusterMap> map);
  // True if this is the first message about that node's end.
  bool Take(const proto::NodeDown& down) { return told_.insert(down.node).second; }
  // The ends of nodes that the newest map shows without a NodeDown, as their message was lost or is
  // late. Each is returned once and counts as told.
  std::vector<proto::NodeDown> Untold();

  const std::shared_ptr<const proto::ClusterMap>& newest() const { return newest_; }

 private:
  std::shared_ptr<const proto::ClusterMap> newest_;
  std::set<std::uint32_t> told_;
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_MAP_FOLLOWER_H_
