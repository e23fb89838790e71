// NewSystemProvider makes the verbs of the system: libibverbs and librdmacm, loaded when they are
// first needed.
#ifndef LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
#define LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_

#include <memory>

#include "van/rdma/verbs/verbs.h"

namespace leeway::van::verbs {

// Can be made without library or device; Viable then says what is missing. After a fork, only the
// parent may use objects that were made before. `path`: of all connections; if none can use it,
// Viable says so.
std::unique_ptr<Provider> NewSystemProvider(const Path& path = {});

}  // namespace leeway::van::verbs

#endif  // LEEWAY_VAN_RDMA_VERBS_SYSTEM_VERBS_H_
