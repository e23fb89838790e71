// NewRdmaTransport makes the transport over rdma, and NewRdmaFactory the van over it alone. All
// work is done on the loop's thread.
//
// Addresses are those of tcp, "tcp://HOST:PORT"; rdma has its own space of ports, so a tcp listener
// may have the same port (docs/rdma.md).
#ifndef LEEWAY_VAN_RDMA_RDMA_TRANSPORT_H_
#define LEEWAY_VAN_RDMA_RDMA_TRANSPORT_H_

#include <cstdint>
#include <memory>

#include "van/rdma/verbs/verbs.h"
#include "van/transport.h"
#include "van/van.h"

namespace leeway::van {

// Sizes of the memory that connections use. All in bytes but `packets` and `arena_units`.
struct RdmaSizes {
  std::uint32_t slot_bytes = 16 << 10;  // largest packet
  std::uint32_t packets = 32;           // packets that a peer may have under way
  std::uint32_t arena_units = 4096;     // units (16 MiB) that a peer with large frames may write to
  // Shorter frames are copied into packets, which costs less than registering them.
  std::uint64_t write_bytes_min = 32 << 10;
  // Memory for shorter answers is not posted, because registering it costs more than a copy.
  std::uint64_t posted_bytes_min = 64 << 10;
};

// If `provider` cannot be opened, all calls of the transport fail with that reason.
std::unique_ptr<Transport> NewRdmaTransport(verbs::Provider* provider, runtime::Loop* loop,
                                            const Limits& limits, const RdmaSizes& sizes);

// The loops of its vans must be runtime::RealLoop.
std::unique_ptr<Factory> NewRdmaFactory(std::shared_ptr<verbs::Provider> provider,
                                        const RdmaSizes& sizes = {});

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_TRANSPORT_H_
