// A request on its way through a data thread, and the limits of what may wait in one.
#ifndef LEEWAY_PS_TABLE_INBOUND_H_
#define LEEWAY_PS_TABLE_INBOUND_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "proto/messages/messages.h"
#include "ps/replication/log/log_entry.h"
#include "ps/store/shard_store.h"
#include "runtime/memory/buffer.h"
#include "van/van.h"

namespace leeway::ps {

// A worker's request that came before its predecessors waits for them, within these.
inline constexpr std::size_t kEarlyRequestsMax = 1024;                   // a stream
inline constexpr std::uint64_t kEarlyBytesMax = std::uint64_t{1} << 30;  // a thread
// Outcomes other than OK that a stream remembers, to give a request that is sent again the same
// answer.
inline constexpr std::size_t kFailuresRememberedMax = 256;
// What a request that waits is charged on top of its payload.
inline constexpr std::uint64_t kRequestOverheadBytes = 512;

struct Inbound {
  van::PeerId peer = 0;
  proto::Request request;
  Payload payload;  // proto::Decode has checked number, sizes and alignment

  std::uint64_t bytes() const {
    std::uint64_t total = kRequestOverheadBytes;
    for (const runtime::Buffer& frame : payload) total += frame.size();
    return total;
  }
};

// Each push of a batch as if it had come alone, in the order of the batch. They share the buffer.
void ForEachPush(van::PeerId peer, const proto::PushBatch& batch, const runtime::Buffer& values,
                 absl::FunctionRef<void(Inbound)> take);

// For what is kept after its request has been answered. Small frames may share their memory with
// all that came in the same envelope or batch, which would stay as well; and a worker gives its
// user's memory free when it has its answer: that is not to be read any more. These are copied.
void EnsureOwned(Payload* payload);

// The frames by their meaning (proto/messages/messages.h has their order). Shares the buffers.
PushView ToPush(const Inbound& inbound);
PullView ToPull(const Inbound& inbound);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_INBOUND_H_
