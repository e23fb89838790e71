#include "node/join_message.h"

#include <algorithm>
#include <cstdint>

#include "compress/registry.h"
#include "proto/messages/limits.h"

namespace leeway::node {

proto::Join MakeJoin(const Config& config, Role role, const std::vector<std::string>& endpoints) {
  proto::Join join;
  join.role = role;
  join.host = config.host;
  join.endpoints = endpoints;
  if (config.rank.has_value() && role != Role::kReader) {
    // A rank beyond every limit is sent as the largest there can be, and refused like it.
    const std::uint32_t ranks = role == Role::kServer ? proto::kServersMax : proto::kWorkersMax;
    join.rank_wanted = static_cast<std::int32_t>(std::min(*config.rank, ranks - 1));
  }
  join.num_servers = config.num_servers;
  join.num_workers = config.num_workers;
  join.elastic = config.elastic;
  join.codecs = compress::CodecVersions();
  return join;
}

}  // namespace leeway::node
