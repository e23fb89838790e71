// These helpers are for tests of vans on real loops and in real processes.
#ifndef LEEWAY_VAN_TESTING_TEST_PROCESSES_H_
#define LEEWAY_VAN_TESTING_TEST_PROCESSES_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "runtime/loop/real_loop.h"
#include "van/testing/dial_raw.h"
#include "van/testing/test_world.h"

namespace leeway::van {

int OpenDescriptors();
int SharedMappings();  // mappings of memory that can be shared with other processes

// Runs that loop until `done` is true, and sleeps when there is nothing to do. False: `at_most`
// passed first.
bool TurnUntil(runtime::RealLoop* loop, const std::function<bool()>& done,
               absl::Duration at_most = absl::Seconds(60));

// Runs `body` in a child process, which ends after it.
pid_t InChild(const std::function<void()>& body);
void Kill(pid_t child);

// Bytes from which their position can be told.
std::string Pattern(std::size_t size, int seed);

// Sends large and small messages as long as the process lives: the header counts them, the payload
// is all 'k'.
void SendForEver(runtime::RealLoop* loop, Van* van, Recorder* recorder, PeerId peer);
// Starts a process that connects to that address and does so.
pid_t WorkerThatSendsForEver(Factory* factory, const std::string& address);

// Sends messages after pauses of all lengths, so that they come before, while and after the other
// side falls asleep. A lost wake-up would stop the exchange for good.
void ExpectNoWakeUpIsLost(Factory* factory, const std::string& host);
// The same in the way of a worker: one thread sleeps on the loop's descriptors, others send under
// the lock and run the loop themselves.
void ExpectNoWakeUpIsLostByASharedLoop(Factory* factory, const std::string& host);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_TEST_PROCESSES_H_
