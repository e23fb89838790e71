// The replies to the newest requests of each node, for requests that are repeated because the reply
// was lost. Limit: kRepliesRememberedMax a node.
#ifndef LEEWAY_SCHEDULER_TABLES_REPLY_MEMORY_H_
#define LEEWAY_SCHEDULER_TABLES_REPLY_MEMORY_H_

#include <cstdint>
#include <map>
#include <utility>

#include "proto/messages/messages.h"

namespace leeway::scheduler {

// The newest this many answers to each node. A worker numbers its requests in order.
inline constexpr std::size_t kRepliesRememberedMax = 64;

class ReplyMemory {
 public:
  const proto::TableReply* Find(std::uint32_t node, std::uint64_t request, bool create) const {
    const auto of_node = replies_.find(node);
    if (of_node == replies_.end()) return nullptr;
    const auto reply = of_node->second.find({request, create});
    return reply == of_node->second.end() ? nullptr : &reply->second;
  }
  void Remember(std::uint32_t node, bool create, proto::TableReply reply) {
    auto& of_node = replies_[node];
    const std::uint64_t request = reply.request;
    of_node[{request, create}] = std::move(reply);
    if (of_node.size() > kRepliesRememberedMax) {
      of_node.erase(of_node.begin());
    }
  }
  void Forget(std::uint32_t node) { replies_.erase(node); }

 private:
  using Key = std::pair<std::uint64_t, bool>;                          // request, whether to create
  std::map<std::uint32_t, std::map<Key, proto::TableReply>> replies_;  // by node
};

}  // namespace leeway::scheduler

#endif  // LEEWAY_SCHEDULER_TABLES_REPLY_MEMORY_H_
