// What a node says when it joins.
#ifndef LEEWAY_NODE_JOIN_MESSAGE_H_
#define LEEWAY_NODE_JOIN_MESSAGE_H_

#include <string>
#include <vector>

#include "leeway/config.h"
#include "proto/messages/messages.h"

namespace leeway::node {

// `endpoints`: a server's data threads.
proto::Join MakeJoin(const Config& config, Role role, const std::vector<std::string>& endpoints);

}  // namespace leeway::node

#endif  // LEEWAY_NODE_JOIN_MESSAGE_H_
