// The van over TCP with a protocol of our own: tcp://. Nothing in it has threads.
#ifndef LEEWAY_VAN_TCP_TCP_VAN_H_
#define LEEWAY_VAN_TCP_TCP_VAN_H_

#include <memory>

#include "van/van.h"

namespace leeway::van {

// Loops must be runtime::RealLoop.
std::unique_ptr<Factory> NewTcpFactory();

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TCP_TCP_VAN_H_
