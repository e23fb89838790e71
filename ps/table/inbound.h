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
inline constexpr std::size_t kEarlyRequestsMax = 1024;                   // a session and class
inline constexpr std::uint64_t kEarlyBytesMax = std::uint64_t{1} << 30;  // a thread
// Outcomes other than OK that a session remembers, to give a request that is sent again the same
// answer.
inline constexpr std::size_t kFailuresRememberedMax = 256;
// The bytes that a request that waits is charged on top of its payload.
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

// Copies the frames that may not be kept after their request has been answered: small ones, which
// may share their memory with all that came in the same envelope or batch, and imports of a
// worker's memory, which its user may write to once it has the answer.
void EnsureOwned(Payload* payload);
void EnsureOwned(PushView* push);

// The frames by their meaning (proto/messages/messages.h has their order). Shares the buffers.
PushView ToPush(const Inbound& inbound);
PullView ToPull(const Inbound& inbound);

}  // namespace leeway::ps

#endif  // LEEWAY_PS_TABLE_INBOUND_H_
