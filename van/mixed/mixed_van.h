// NewFactory makes the van that a process uses according to its settings.
#ifndef LEEWAY_VAN_MIXED_MIXED_VAN_H_
#define LEEWAY_VAN_MIXED_MIXED_VAN_H_

#include <memory>

#include "leeway/config.h"
#include "van/rdma/verbs/verbs.h"
#include "van/van.h"

namespace leeway::van {

// Config::van decides: shared memory where both ends are on one machine, rdma where both ends have
// a device, and TCP elsewhere ("auto"); only one of these ("shm", "rdma", "tcp"); or ZeroMQ over
// TCP ("zmq"). Addresses are tcp:// in all cases.
std::unique_ptr<Factory> NewFactory(const Config& config);
// The same, with other verbs than the system's.
std::unique_ptr<Factory> NewFactory(const Config& config,
                                    std::shared_ptr<verbs::Provider> provider);

// The path of rdma connections by these settings.
verbs::Path RdmaPathOf(const Config& config);

// A van for tools: it reaches every process of a cluster with these settings, and shares memory
// with none.
std::unique_ptr<Factory> NewToolFactory(const Config& config);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_MIXED_MIXED_VAN_H_
