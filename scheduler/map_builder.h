// The cluster map: which server thread owns which shard, and who there is.
#ifndef LEEWAY_SCHEDULER_MAP_BUILDER_H_
#define LEEWAY_SCHEDULER_MAP_BUILDER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/messages.h"
#include "scheduler/membership_table.h"

namespace leeway::scheduler {

class MapBuilder {
 public:
  explicit MapBuilder(std::uint32_t num_shards) : num_shards_(num_shards) {}

  // The map after a change of `members`: one version on. The epoch becomes 1 when the cluster is
  // complete, which is when the shards are dealt; later it grows when a server is lost.
  std::shared_ptr<const proto::ClusterMap> Next(const MembershipTable& members);

  const std::shared_ptr<const proto::ClusterMap>& newest() const { return newest_; }

 private:
  const std::uint32_t num_shards_;
  std::shared_ptr<const proto::ClusterMap> newest_ = std::make_shared<proto::ClusterMap>();
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MAP_BUILDER_H_
