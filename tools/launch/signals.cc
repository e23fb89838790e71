#include "tools/launch/signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "runtime/base/monotonic_time.h"

namespace leeway::launch {

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &pipe_before_);
  sigaction(SIGTTOU, &ignore, &tty_before_);
}

Signals::~Signals() {
  sigaction(SIGPIPE, &pipe_before_, nullptr);
  sigaction(SIGTTOU, &tty_before_, nullptr);
  close(fd_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::Next() {
  signalfd_siginfo info;
  return read(fd_, &info, sizeof(info)) == sizeof(info) ? static_cast<int>(info.ssi_signo) : 0;
}

void Signals::Wait(absl::Time deadline) const {
  pollfd ready = {fd_, POLLIN, 0};
  poll(&ready, 1, PollMilliseconds(deadline));
}

int PollMilliseconds(absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = absl::Ceil(deadline - runtime::MonotonicNow(), absl::Milliseconds(1));
  return static_cast<int>(std::clamp<std::int64_t>(absl::ToInt64Milliseconds(left), 0, 60'000));
}

}  // namespace leeway::launch
