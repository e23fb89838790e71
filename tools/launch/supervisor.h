// Runs a set of processes that stand and fall together.
#ifndef LEEWAY_TOOLS_LAUNCH_SUPERVISOR_H_
#define LEEWAY_TOOLS_LAUNCH_SUPERVISOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tools/launch/process.h"

namespace leeway::launch {

enum class Stream { kOutput, kErrors };

struct SupervisorOptions {
  // A line, without its end, that processes[index] wrote. False: nobody reads them any more.
  std::function<bool(std::size_t index, Stream stream, absl::string_view line)> on_line;
  // From being asked to end (SIGTERM) to being made to (SIGKILL).
  absl::Duration grace = absl::Seconds(5);
  // When those that serve are asked to end a second time, if the work has ended by then: nobody is
  // left for whom they should take care.
  absl::Duration ask_again = absl::Seconds(1);
  // Of all processes that may be started again together.
  std::uint32_t restarts_max = 0;
  // From the end of a process to the start of the one in its place: so that one that cannot start
  // does not do so many times a second.
  absl::Duration restart_pause = absl::Seconds(1);
  // What happens to processes, for people: one line without its end.
  std::function<void(absl::string_view line)> on_event = [](absl::string_view) {};
  // How long those that serve may go on once the work is done, before they are asked to end.
  absl::Duration settle = absl::Seconds(3);
};

struct SupervisorResult {
  int exit_code = 0;    // of the first process that failed; 128 + N where a signal N ended it
  std::string failure;  // who failed how, in one line; empty if all went well
};

// Returns when all have ended and no descendant is left. When one fails, the rest are stopped.
// SIGINT, SIGTERM and SIGHUP are passed on to all and stop them. They and SIGCHLD are blocked
// meanwhile; no other thread of this process may take them or wait for children.
SupervisorResult Supervise(const std::vector<ProcessSpec>& processes,
                           const SupervisorOptions& options);

// "server 1 exited with code 3", "server 1 was killed by signal 9 (Killed)".
std::string DescribeEnd(absl::string_view name, int wait_status);
int ExitCodeOf(int wait_status);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_SUPERVISOR_H_
