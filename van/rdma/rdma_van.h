// NewRdmaFactory makes the van over rdma alone.
#ifndef LEEWAY_VAN_RDMA_RDMA_VAN_H_
#define LEEWAY_VAN_RDMA_RDMA_VAN_H_

#include <memory>

#include "van/rdma/memory/rdma_memory.h"
#include "van/rdma/verbs/verbs.h"
#include "van/transport.h"
#include "van/van.h"

namespace leeway::van {

// If `provider` cannot be opened, all calls of the transport fail with that reason.
std::unique_ptr<Transport> NewRdmaTransport(verbs::Provider* provider, runtime::Loop* loop,
                                            const Limits& limits, const RdmaSizes& sizes);

// Addresses are "tcp://HOST:PORT". The loops of its vans must be runtime::RealLoop.
std::unique_ptr<Factory> NewRdmaFactory(std::shared_ptr<verbs::Provider> provider,
                                        const RdmaSizes& sizes = {});

}  // namespace leeway::van

#endif  // LEEWAY_VAN_RDMA_RDMA_VAN_H_
