// RunGuarded runs two processes that watch each other, so that none is left behind even if one is
// killed.
#ifndef LEEWAY_TOOLS_LAUNCH_GUARD_H_
#define LEEWAY_TOOLS_LAUNCH_GUARD_H_

#include <functional>

#include "absl/time/time.h"

namespace leeway::launch {

// Runs `body` in a child process and returns its exit code. SIGINT, SIGTERM and SIGHUP are passed
// on to it; it has to end within `patience` then, or it is killed. When this process dies, the
// child gets a SIGTERM; when the child dies, all its descendants are killed. Call it before the
// first thread starts.
int RunGuarded(const std::function<int()>& body, absl::Duration patience = absl::Seconds(15));

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_GUARD_H_
