// Functions about joining a cluster: the scheduler's address, the Join message, and the line that
// says which nodes are missing. Any thread.
#ifndef LEEWAY_NODE_JOINING_H_
#define LEEWAY_NODE_JOINING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "leeway/config.h"
#include "proto/messages/messages.h"

namespace leeway::node {

// Config::scheduler as an address of the van: "host:port" means tcp.
std::string SchedulerUrl(absl::string_view scheduler);

// What to say in front of the address of a scheduler that was dialled in vain: "no scheduler at",
// unless `why`, the van's error, is another case.
absl::string_view NotReachedAt(const absl::Status& why);

// `endpoints`: the addresses of a server's data threads.
proto::Join MakeJoin(const Config& config, Role role, const std::vector<std::string>& endpoints);

// "1 of 2 servers and 3 of 4 workers have joined; missing server 1 and worker 2".
std::string DescribeMissing(const proto::ClusterMap& map, std::uint32_t num_servers,
                            std::uint32_t num_workers);

}  // namespace leeway::node

#endif  // LEEWAY_NODE_JOINING_H_
