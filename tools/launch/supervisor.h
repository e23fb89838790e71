// Supervise runs a set of processes: if one fails, all end.
#ifndef LEEWAY_TOOLS_LAUNCH_SUPERVISOR_H_
#define LEEWAY_TOOLS_LAUNCH_SUPERVISOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "tools/launch/process.h"

namespace leeway::launch {

enum class Stream { kOutput, kErrors };

struct SupervisorOptions {
  // A line, without its end, that processes[index] wrote. False: the output cannot be written any
  // more.
  std::function<bool(std::size_t index, Stream stream, absl::string_view line)> on_line;
  // The time from SIGTERM to SIGKILL.
  absl::Duration grace = absl::Seconds(5);
  // When serving processes get a second SIGTERM, if the work has ended by then: no worker is left
  // that they would have to wait for.
  absl::Duration ask_again = absl::Seconds(1);
  // The number of processes that may be started again, over all of them.
  std::uint32_t restarts_max = 0;
  // The time from the end of a process to the start of its replacement, so that a process that
  // cannot start does not do so many times a second.
  absl::Duration restart_pause = absl::Seconds(1);
  // Whether all processes of the work have joined the cluster; nullopt: that is not known yet.
  // Asked from the time on that one of them has succeeded while others run, until it is known: if
  // not, they wait for it in vain, and that is a failure. May block for a short time.
  std::function<std::optional<bool>()> all_joined = [] { return true; };
  // Events of processes, for people: one line without its end.
  std::function<void(absl::string_view line)> on_event = [](absl::string_view) {};
  // The time that serving processes may go on once the work is done. Longer, and they are stopped
  // and that is a failure: the work was never done for them, or has not told them that it is.
  absl::Duration end_grace = absl::Seconds(6);
};

struct SupervisorResult {
  int exit_code = 0;    // of the first process that failed; 128 + N if signal N ended it
  std::string failure;  // the process and its end, in one line; empty if all succeeded
};

// Returns when all have ended and no descendant is left. If one fails, the rest are stopped.
// SIGINT, SIGTERM and SIGHUP are passed on to all and stop them. They and SIGCHLD are blocked
// meanwhile; no other thread of this process may take them or wait for children.
SupervisorResult Supervise(const std::vector<ProcessSpec>& processes,
                           const SupervisorOptions& options);

// "server 1 exited with code 3", "server 1 was killed by signal 9 (Killed)".
std::string DescribeEnd(absl::string_view name, int wait_status);
int ExitCodeOf(int wait_status);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_SUPERVISOR_H_
