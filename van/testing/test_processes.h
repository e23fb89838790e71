// For tests of vans on real loops and in real processes.
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
int SharedMappings();  // of memory that can be shared with other processes

// Turns that loop, sleeping where there is nothing to do.
bool TurnUntil(runtime::RealLoop* loop, const std::function<bool()>& done,
               absl::Duration at_most = absl::Seconds(60));

// Runs `body` in a process of its own, which never returns from here.
pid_t InChild(const std::function<void()>& body);
void Kill(pid_t child);

// Bytes that tell where they belong.
std::string Pattern(std::size_t size, int seed);

// Sends large and small messages for as long as it lives: the header counts them, the payload is
// all 'k'.
void SendForEver(runtime::RealLoop* loop, Van* van, Recorder* recorder, PeerId peer);
// A process that connects there and does so.
pid_t WorkerThatSendsForEver(Factory* factory, const std::string& address);

// Pauses of every length, so that a message comes before, while and after the other side falls
// asleep; a wake-up that gets lost stops it for good.
void ExpectNoWakeUpIsLost(Factory* factory, const std::string& host);
// The way a worker uses it: one thread sleeps on the loop's descriptors, others send under the lock
// and turn the loop themselves.
void ExpectNoWakeUpIsLostByASharedLoop(Factory* factory, const std::string& host);

}  // namespace leeway::van

#endif  // LEEWAY_VAN_TESTING_TEST_PROCESSES_H_
