#include "tools/launch/guard.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/monotonic_time.h"
#include "tools/launch/process.h"
#include "tools/launch/signals.h"
#include "tools/launch/supervisor.h"

namespace leeway::launch {
namespace {

// True if the child has ended; writes its status. Adopted orphans are reaped on the way.
bool Reap(pid_t child, int* status) {
  int ended = 0;
  while (true) {
    const pid_t pid = waitpid(-1, &ended, WNOHANG);
    if (pid <= 0) return false;
    if (pid == child) {
      *status = ended;
      return true;
    }
  }
}

int Watch(pid_t child, Signals* signals, absl::Duration patience) {
  absl::Time kill_at = absl::InfiniteFuture();
  int status = 0;
  while (!Reap(child, &status)) {
    signals->Wait(kill_at);
    while (const int signal = signals->Next()) {
      if (signal == SIGCHLD) continue;
      kill(child, signal);
      kill_at = std::min(kill_at, runtime::MonotonicNow() + patience);
    }
    if (runtime::MonotonicNow() >= kill_at) kill(child, SIGKILL);
  }
  KillDescendants();
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "leeway: %s\n", DescribeEnd("the launcher", status).c_str());
  }
  return ExitCodeOf(status);
}

}  // namespace

int RunGuarded(const std::function<int()>& body, absl::Duration patience) {
  std::fflush(nullptr);  // otherwise the child would write the buffered text again
  AdoptOrphans();
  Signals signals;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    std::fprintf(stderr, "leeway: cannot start a process: %s\n", std::strerror(errno));
    return 1;
  }
  if (child > 0) return Watch(child, &signals, patience);
  // A group of its own: a terminal's signal to our group arrives once, passed on by us.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  const int code = body();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace leeway::launch
