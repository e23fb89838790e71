// Leavers are the threads on which workers leave that were destroyed within a callback. The end of
// the process waits for them, so that such a worker is not taken for dead.
//
// The end is exit() or the return from main; not _exit, abort or a signal. In a child of the
// process (fork()) nothing waits for the parent's leavers. Any thread.
#ifndef LEEWAY_WORKER_CLIENT_LEAVERS_H_
#define LEEWAY_WORKER_CLIENT_LEAVERS_H_

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace leeway::worker {

// Calls `leave`, which returns once the others know, then `close`, which destroys the rest, on a
// thread of its own. The end of the process waits for it for at most `timeout`.
void StartLeaver(absl::Duration timeout, absl::AnyInvocable<void()> leave,
                 absl::AnyInvocable<void()> close);

// Waits until all leavers of this process have closed, or, within a callback, which a leaver may
// wait for in its turn, until they have left; for at most the longest of their timeouts.
void WaitForLeavers();

}  // namespace leeway::worker

#endif  // LEEWAY_WORKER_CLIENT_LEAVERS_H_
