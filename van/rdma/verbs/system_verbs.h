// The verbs of the system: libibverbs and librdmacm, loaded when they are first needed.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_

#include <memory>

#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

// Works, in the sense that Viable says why not, also where neither library nor device is there.
// A process that has forked uses what it made before only on one side, the parent's.
// `path`: of all connections; where none can go that way, Viable says so.
std::unique_ptr<Provider> NewSystemProvider(const Path& path = {});

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
