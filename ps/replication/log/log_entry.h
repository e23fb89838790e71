// An entry of a shard's log, as it waits to be sent to another replica.
#ifndef LEEWAY_PS_REPLICATION_LOG_LOG_ENTRY_H_
#define LEEWAY_PS_REPLICATION_LOG_LOG_ENTRY_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "proto/messages/messages.h"
#include "runtime/memory/buffer.h"

namespace leeway::ps {

using Payload = absl::InlinedVector<runtime::Buffer, 3>;

// The bytes that an entry is charged on top of its payload.
inline constexpr std::uint64_t kEntryOverheadBytes = 256;

// Copies share the payload.
struct LogEntry {
  proto::Replicate header;
  Payload payload;

  std::uint64_t bytes() const {
    std::uint64_t total =
        kEntryOverheadBytes + header.workers.size() * sizeof(proto::ClientSession);
    for (const runtime::Buffer& frame : payload) total += frame.size();
    return total;
  }
};

}  // namespace leeway::ps

#endif  // LEEWAY_PS_REPLICATION_LOG_LOG_ENTRY_H_
