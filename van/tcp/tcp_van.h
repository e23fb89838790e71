// NewTcpFactory makes the van over TCP (tcp://) with Leeway's own framing. It has no threads of its
// own.
#ifndef LEEWAY_VAN_TCP_TCP_VAN_H_
#define LEEWAY_VAN_TCP_TCP_VAN_H_

#include <memory>

#include "van/van.h"

namespace leeway::van {

// The loops of its vans must be runtime::RealLoop.
std::unique_ptr<Factory> NewTcpFactory();

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_VAN_H_
