// What the shards of one data thread share.
#ifndef LEEWAY_PS_SHARD_CONTEXT_H_
#define LEEWAY_PS_SHARD_CONTEXT_H_

#include <cstdint>

#include "ps/byte_budget.h"
#include "ps/counters.h"
#include "ps/inbound.h"
#include "ps/table.h"
#include "runtime/loop.h"
#include "van/van.h"

namespace leeway::ps {

// Sends answers to workers.
class Replier {
 public:
  virtual ~Replier() = default;
  virtual void SendReply(van::PeerId peer, proto::Reply reply, Payload payload) = 0;
};

// Outlives the shards.
struct ShardContext {
  runtime::Loop* loop = nullptr;
  Replier* replier = nullptr;
  Counters* counters = nullptr;
  Tables tables;
  std::uint32_t num_shards = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t message_bytes_max = 0;
  ByteBudget early{.bytes_max = kEarlyBytesMax};
  ByteBudget held;  // pushes and pulls that wait for slower workers
  // Serves every pull at once, whatever its policy says: to show that the worker's own check of
  // the bound notices.
  bool test_only_never_hold = false;
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_SHARD_CONTEXT_H_
