// The builder of cluster maps: which data threads keep which shard, and which nodes there are.
// Gives each map its version and epoch. No network and no clock.
#ifndef LEEWAY_SCHEDULER_MAPS_MAP_BUILDER_H_
#define LEEWAY_SCHEDULER_MAPS_MAP_BUILDER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "proto/messages/chain.h"
#include "proto/messages/messages.h"
#include "scheduler/members/membership_table.h"

namespace leeway::scheduler {

// Between the versions of two maps. A restart alone makes the version one more, so that an old copy
// of the state does not come to versions that nodes have, however often it is started.
inline constexpr std::uint64_t kVersionStride = 100;

class MapBuilder {
 public:
  // The map after a change of `members`, of the chains, of `codecs` or of `table_settings`: one
  // version on. The epoch is 0 until there are chains, and grows whenever they or the servers
  // change.
  std::shared_ptr<const proto::ClusterMap> Next(
      const MembershipTable& members, const std::vector<proto::Chain>& chains,
      std::vector<proto::CodecSwitch> codecs = {},
      std::vector<proto::TableSettings> table_settings = {});
  // Goes on behind a map of that version and epoch, which had these members and chains.
  void Restore(std::uint64_t version, std::uint64_t epoch, const MembershipTable& members,
               const std::vector<proto::Chain>& chains, std::vector<proto::CodecSwitch> codecs = {},
               std::vector<proto::TableSettings> table_settings = {});

  const std::shared_ptr<const proto::ClusterMap>& newest() const { return newest_; }

  // Ranks of the servers that are members of chains that the newest map has changed.
  const std::set<std::uint32_t>& concerned() const { return concerned_; }
  // The epoch in which the shard's chain changed last; 0: there is no such shard.
  std::uint64_t Since(std::uint32_t shard) const {
    return shard < since_.size() ? since_[shard] : 0;
  }

 private:
  void NoteChanges(const std::vector<proto::Chain>& chains, std::uint64_t epoch);

  std::shared_ptr<const proto::ClusterMap> newest_ = std::make_shared<proto::ClusterMap>();
  std::vector<proto::Chain> chains_;  // of the newest map
  std::vector<std::uint64_t> since_;  // by shard
  std::set<std::uint32_t> concerned_;
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_MAPS_MAP_BUILDER_H_
