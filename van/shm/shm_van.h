// NewShmFactory makes the van over shared memory (shm://), for processes of one user on one
// machine.
#ifndef LEEWAY_VAN_SHM_SHM_VAN_H_
#define LEEWAY_VAN_SHM_SHM_VAN_H_

#include <cstdint>
#include <memory>

#include "van/van.h"

namespace leeway::van {

// The loops of its vans must be runtime::RealLoop. `arena_bytes`: how many bytes each side of a
// connection can have under way in shared memory; a larger frame, or further ones, are sent in
// pieces.
std::unique_ptr<Factory> NewShmFactory(std::uint64_t arena_bytes = 64 << 20);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_SHM_SHM_VAN_H_
