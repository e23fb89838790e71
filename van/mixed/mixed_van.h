// The van that a process uses unless it is told otherwise.
#ifndef LEEWAY_VAN_MIXED_MIXED_VAN_H_
#define LEEWAY_VAN_MIXED_MIXED_VAN_H_

#include <memory>

#include "leeway/config.h"
#include "van/rdma/verbs/verbs.h"
#include "van/van.h"

namespace leeway::van {

// By Config::van: shared memory where both ends share a machine, rdma where both ends have a
// device, and TCP elsewhere ("auto"); only one of them ("shm", "rdma", "tcp"); or ZeroMQ over TCP
// ("zmq"). Addresses are tcp:// in any case.
std::unique_ptr<Factory> NewFactory(const Config& config);
// The same with other verbs than the system's.
std::unique_ptr<Factory> NewFactory(const Config& config,
                                    std::shared_ptr<verbs::Provider> provider);

// Which way rdma connections are to go by these settings.
verbs::Path RdmaPathOf(const Config& config);

// What reaches every process of such a cluster without sharing memory with any: for tools.
std::unique_ptr<Factory> NewToolFactory(const Config& config);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_MIXED_MIXED_VAN_H_
