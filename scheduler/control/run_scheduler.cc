#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/log/log.h"
#include "runtime/loop/real_loop.h"
#include "scheduler/control/scheduler.h"
#include "van/mixed/mixed_van.h"

namespace leeway::scheduler {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Keeps the signals that end a scheduler from every thread started in its life, and reads them
// from a descriptor instead.
class EndingSignals {
 public:
  EndingSignals()
      : wanted_(Wanted()), blocked_(Block()), fd_(signalfd(-1, &wanted_, SFD_CLOEXEC)) {}
  ~EndingSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;

  bool valid() const { return blocked_ && fd_.get() >= 0; }
  int fd() const { return fd_.get(); }
  const char* Read() {
    signalfd_siginfo info{};
    if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return "a signal";
    return info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM";
  }

 private:
  static sigset_t Wanted() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return set;
  }
  bool Block() { return pthread_sigmask(SIG_BLOCK, &wanted_, &before_) == 0; }

  sigset_t before_{};
  const sigset_t wanted_;
  const bool blocked_;
  const Fd fd_;
};

// The scheduler on its loop, and how it ended.
class Running {
 public:
  Running(runtime::Host* host, van::Factory* factory, const Config& config,
          const Additions& additions, int over_fd)
      : over_fd_(over_fd), runner_(host->Spawn("scheduler")) {
    runner_->loop()->Post([this, host, factory, config, additions] {
      scheduler_ = std::make_unique<Scheduler>(host, runner_->loop(), factory, config, additions);
      const absl::Status started =
          scheduler_->Start([this](absl::Status result) { Over(std::move(result)); });
      if (!started.ok()) Over(started);
    });
  }
  ~Running() {
    runner_->loop()->Post([this] {
      scheduler_.reset();
      runner_->Stop();
    });
    runner_->Join();
  }

  void Stop(absl::Status why) {
    runner_->loop()->Post([this, why = std::move(why)] {
      if (scheduler_ != nullptr) scheduler_->Stop(why);
    });
  }
  // Once `over_fd` is readable.
  absl::Status result() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return result_;
  }

 private:
  void Over(absl::Status result) {
    scheduler_.reset();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      result_ = std::move(result);
    }
    const std::uint64_t one = 1;
    if (write(over_fd_, &one, sizeof(one)) != sizeof(one)) {
      runtime::LogError("cannot tell that the scheduler is over: ", std::strerror(errno));
    }
  }

  const int over_fd_;
  mutable std::mutex mutex_;
  absl::Status result_;
  std::unique_ptr<Scheduler> scheduler_;  // touched only on the loop
  std::unique_ptr<runtime::LoopRunner> runner_;
};

// Servers get these paths, and may run in other folders.
void MakeAbsolute(std::string* path) {
  if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal().string();
}

}  // namespace

absl::Status RunScheduler(const Config& given, const Additions& additions) {
  Config config = given;
  LEEWAY_RETURN_IF_ERROR(config.Validate());
  MakeAbsolute(&config.checkpoint_dir);
  MakeAbsolute(&config.restore);
  EndingSignals signals;
  const Fd over(eventfd(0, EFD_CLOEXEC));
  if (!signals.valid() || over.get() < 0) {
    return absl::InternalError(absl::StrCat("cannot watch for signals: ", std::strerror(errno)));
  }
  const std::unique_ptr<runtime::Host> host =
      runtime::NewRealHost(absl::Microseconds(config.busy_poll_us));
  const std::unique_ptr<van::Factory> factory = van::NewFactory(config);
  if (absl::Status viable = factory->Viable(); !viable.ok()) return viable;
  Running running(host.get(), factory.get(), config, additions, over.get());
  pollfd fds[] = {{over.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
  int signals_seen = 0;
  while ((fds[0].revents & POLLIN) == 0) {
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return absl::InternalError(absl::StrCat("cannot wait for signals: ", std::strerror(errno)));
    }
    if ((fds[1].revents & POLLIN) == 0) continue;
    const absl::Status why =
        absl::CancelledError(absl::StrCat("the scheduler was stopped by ", signals.Read()));
    // A second signal ends it at once, without waiting for the nodes.
    if (++signals_seen > 1) return why;
    running.Stop(why);
  }
  return running.result();
}

}  // namespace leeway::scheduler
