// Makes one orderly story out of what the scheduler says about the cluster, whatever the network
// lost, repeated or reordered of it.
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
  // Whether the map is newer than the newest one; then it is the newest.
  bool Take(std::shared_ptr<const proto::ClusterMap> map);
  // Whether this is the first word about that node's end.
  bool Take(const proto::NodeDown& down) { return told_.insert(down.node).second; }
  // The ends of nodes that the newest map shows and no NodeDown has told of: their message was
  // lost or is late. Each is returned once and counts as told.
  std::vector<proto::NodeDown> Untold();

  const std::shared_ptr<const proto::ClusterMap>& newest() const { return newest_; }

 private:
  std::shared_ptr<const proto::ClusterMap> newest_;
  std::set<std::uint32_t> told_;
};

}  // namespace leeway::node

#endif  // LEEWAY_NODE_MAP_FOLLOWER_H_
