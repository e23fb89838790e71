// The van that a process uses unless it is told otherwise.
#ifndef LEEWAY_VAN_MIXED_MIXED_VAN_H_
#define LEEWAY_VAN_MIXED_MIXED_VAN_H_

#include <memory>

#include "leeway/config.h"
#include "van/van.h"

namespace leeway::van {

// By Config::van: shared memory where both ends share a machine and ZeroMQ over tcp elsewhere
// ("auto"), only the one ("shm") or only the other ("tcp"). Addresses are tcp:// in any case.
std::unique_ptr<Factory> NewFactory(const Config& config);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_MIXED_MIXED_VAN_H_
