#include "ps/control/stop_signals.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace leeway::ps {
namespace {

constexpr int kNone = -1;
std::atomic<int> the_fd{kNone};
std::atomic<int> the_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

// Does only what a signal handler may: notes the signal, and makes the descriptor readable.
void OnSignal(int signal) {
  const int saved = errno;
  int none = 0;
  the_signal.compare_exchange_strong(none, signal);
  const std::uint64_t one = 1;
  // An eventfd that is full is readable already.
  [[maybe_unused]] const ssize_t written = write(the_fd.load(), &one, sizeof(one));
  errno = saved;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StopSignals>> StopSignals::Install(
    std::function<void(int)> on_signal) {
  const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no descriptor for signals: ", strerror(errno), " (ulimit -n raises it)"));
  }
  int none = kNone;
  if (!the_fd.compare_exchange_strong(none, fd)) {
    close(fd);
    return absl::AlreadyExistsError("SIGTERM and SIGINT are taken by another server here");
  }
  the_signal = 0;
  std::unique_ptr<StopSignals> signals(new StopSignals(fd, std::move(on_signal)));
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &signals->old_term_);
  sigaction(SIGINT, &action, &signals->old_int_);
  return signals;
}

StopSignals::~StopSignals() {
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGINT, &old_int_, nullptr);
  the_fd = kNone;
  close(fd_);
}

bool StopSignals::Poll() {
  std::uint64_t count = 0;
  if (read(fd_, &count, sizeof(count)) != sizeof(count)) return false;
  on_signal_(the_signal.load());
  return true;
}

}  // namespace leeway::ps
