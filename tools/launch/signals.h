// Signals makes signals readable one by one.
#ifndef LEEWAY_TOOLS_LAUNCH_SIGNALS_H_
#define LEEWAY_TOOLS_LAUNCH_SIGNALS_H_

#include <signal.h>

#include "absl/time/time.h"

namespace leeway::launch {

// While it lives, SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked and returned by Next, and writing
// to a closed pipe or from the background is an error instead of an end or a stop.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }
  // The next signal; 0 if there is none now.
  int Next();
  // Waits until there is a signal or `deadline` has passed.
  void Wait(absl::Time deadline) const;

 private:
  sigset_t before_{};
  struct sigaction pipe_before_ = {}, tty_before_ = {};
  int fd_ = -1;
};

// The timeout for poll(2) until `deadline`, rounded up.
int PollMilliseconds(absl::Time deadline);

}  // namespace leeway::launch

#endif  // LEEWAY_TOOLS_LAUNCH_SIGNALS_H_
