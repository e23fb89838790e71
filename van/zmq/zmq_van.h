// The van over ZeroMQ: tcp://, ipc:// and inproc://.
#ifndef LEEWAY_VAN_ZMQ_ZMQ_VAN_H_
#define LEEWAY_VAN_ZMQ_ZMQ_VAN_H_

#include <memory>

#include "van/van.h"

namespace leeway::van {

enum class ZmqScheme { kTcp, kIpc, kInproc };

// One ZeroMQ context, shared by the factory's vans; inproc names are seen only within it. The
// scheme is only what AnyAddress gives: every van understands all three. Loops must be
// runtime::RealLoop. `io_threads`: ZeroMQ's own, at least 1.
std::unique_ptr<Factory> NewZmqFactory(ZmqScheme scheme = ZmqScheme::kTcp, int io_threads = 1);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_ZMQ_ZMQ_VAN_H_
