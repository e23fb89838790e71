// The van over shared memory: shm://, for processes of one user on one machine.
#ifndef LEEWAY_VAN_SHM_SHM_VAN_H_
#define LEEWAY_VAN_SHM_SHM_VAN_H_

#include <cstdint>
#include <memory>

#include "van/van.h"

namespace leeway::van {

// Loops must be runtime::RealLoop. `arena_bytes`: how much each side of a connection can have under
// way in shared memory; what is larger, or more, goes in pieces.
std::unique_ptr<Factory> NewShmFactory(std::uint64_t arena_bytes = 64 << 20);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_VAN_H_
