// NewZmqFactory makes the van over ZeroMQ: tcp://, ipc:// and inproc://.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_VAN_H_
#define LEEWAY_VAN_ZMQ_ZMQ_VAN_H_

#include <memory>

#include "van/van.h"

namespace leeway::van {

enum class ZmqScheme { kTcp, kIpc, kInproc };

// The vans of a factory share one ZeroMQ context; inproc names are visible only within it. `scheme`
// is only that of AnyAddress: every van understands all three. The loops of the vans must be
// runtime::RealLoop. `io_threads`: ZeroMQ's own, at least 1.
std::unique_ptr<Factory> NewZmqFactory(ZmqScheme scheme = ZmqScheme::kTcp, int io_threads = 1);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_VAN_H_
