#include "harness/child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace leeway::bench {

Child Child::Fork(const std::function<int()>& work) {
  std::fflush(stdout);
  Child child;
  const pid_t parent = getpid();
  child.pid_ = fork();
  if (child.pid_ != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before this asked for a signal at its death
  _exit(work());
}

Child::~Child() { Kill(); }

int Child::Wait() {
  int status = 0;
  if (pid_ <= 0) return -1;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void Child::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  Wait();
}

}  // namespace leeway::bench
