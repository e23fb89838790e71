// The van that a process uses unless it is told otherwise.
#ifndef LEEWAY_VAN_MIXED_MIXED_VAN_H_
#define LEEWAY_VAN_MIXED_MIXED_VAN_H_

#include <memory>

#include "leeway/config.h"
#include "van/van.h"

namespace leeway::van {

// By Config::van: shared memory where both ends share a machine and TCP elsewhere ("auto"), only
// the one ("shm") or only the other ("tcp"), or ZeroMQ over TCP ("zmq"). Addresses are tcp:// in
// any case.
std::unique_ptr<Factory> NewFactory(const Config& config);

// What reaches every process of such a cluster without sharing memory with any: for tools.
std::unique_ptr<Factory> NewToolFactory(const Config& config);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_MIXED_MIXED_VAN_H_
