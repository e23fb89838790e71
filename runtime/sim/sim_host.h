// NewSimHost makes the Host of a simulated process: loops on virtual time, a disk, random numbers.
#ifndef LEEWAY_RUNTIME_SIM_SIM_HOST_H_
#define LEEWAY_RUNTIME_SIM_SIM_HOST_H_

#include <cstdint>
#include <memory>

#include "runtime/files/file_system.h"
#include "runtime/loop/loop.h"
#include "runtime/sim/sim_clock.h"
#include "runtime/sim/sim_events.h"

namespace leeway::runtime {

// All its random numbers follow from `seed`. It does nothing more once `life` is over.
std::unique_ptr<Host> NewSimHost(std::shared_ptr<SimEvents> events, std::shared_ptr<SimLife> life,
                                 std::shared_ptr<FileSystem> disk,
                                 std::shared_ptr<const SimClock> clock, std::uint64_t seed);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_SIM_SIM_HOST_H_
