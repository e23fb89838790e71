#include "tools/launch/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/monotonic_time.h"
#include "tools/launch/lines.h"
#include "tools/launch/signals.h"

namespace leeway::launch {
namespace {

// kReadsMax reads of this size take as much as the largest pipe holds: so all that a dead process
// wrote is read at once, and one that never stops writing does not keep the supervisor from the
// others.
constexpr std::size_t kReadBytes = 64 << 10;
constexpr int kReadsMax = 16;

constexpr int kBrokenPipeCode = 128 + SIGPIPE;
constexpr int kNotOverCode = 1;

// How often it is asked whether all have joined.
constexpr absl::Duration kAskInterval = absl::Seconds(1);

// One stream of one process.
struct Channel {
  int fd;
  Lines lines;
};

struct Member {
  pid_t pid = 0;
  bool running = false;
  absl::Time restart_at = absl::InfiniteFuture();
  std::vector<std::unique_ptr<Channel>> channels;
};

class Supervisor {
 public:
  Supervisor(const std::vector<ProcessSpec>& specs, const SupervisorOptions& options)
      : specs_(specs), options_(options), members_(specs.size()) {}

  SupervisorResult Run() {
    AdoptOrphans();
    for (std::size_t i = 0; i < specs_.size() && !stopping_; ++i) StartOne(i);
    while (AnyRunning() || (!stopping_ && NextRestart() != absl::InfiniteFuture())) {
      if (!stopping_ && WorkIsDone()) end_by_ = std::min(end_by_, In(options_.end_grace));
      Sleep();
      HandleSignals();
      const absl::Time now = runtime::MonotonicNow();
      RestartWhoIsDue(now);
      if (!stopping_ && now >= ask_at_) FailIfNotAllJoined();
      if (!stopping_ && now >= end_by_) Fail(kNotOverCode, DescribeRest());
      if (stopping_ && now >= ask_again_at_ && WorkIsDone()) {
        ask_again_at_ = absl::InfiniteFuture();
        SignalAll(SIGTERM);
      }
      if (stopping_ && now >= kill_at_) break;
    }
    KillDescendants();
    ended_ = true;
    for (Member& member : members_) Drain(&member);
    return result_;
  }

 private:
  static absl::Time In(absl::Duration duration) { return runtime::MonotonicNow() + duration; }

  void StartOne(std::size_t i) {
    absl::StatusOr<Process> process = Start(specs_[i]);
    if (!process.ok()) {
      Fail(127, absl::StrCat(specs_[i].name, ": ", process.status().message()));
      return;
    }
    Member& member = members_[i];
    member.pid = process->pid;
    member.running = true;
    AddChannel(i, Stream::kOutput, process->output);
    AddChannel(i, Stream::kErrors, process->errors);
  }

  void AddChannel(std::size_t i, Stream stream, int fd) {
    auto on_line = [this, i, stream](absl::string_view line) {
      if (unread_ || options_.on_line(i, stream, line)) return;
      unread_ = true;
      Fail(kBrokenPipeCode, "the output cannot be written any more: its reader has closed it");
    };
    members_[i].channels.push_back(std::make_unique<Channel>(Channel{fd, Lines(on_line)}));
  }

  // Reads what is there, up to a limit; closes a stream that has ended.
  void Drain(Member* member) {
    for (auto& channel : member->channels) {
      if (channel->fd < 0) continue;
      char bytes[kReadBytes];
      ssize_t got = 1;
      for (int reads = 0; reads < kReadsMax && got > 0; ++reads) {
        got = read(channel->fd, bytes, sizeof(bytes));
        if (got > 0) channel->lines.Add({bytes, static_cast<std::size_t>(got)});
      }
      if (!ended_ && (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))) continue;
      channel->lines.End();
      close(channel->fd);
      channel->fd = -1;
    }
  }

  void Sleep() {
    std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
    for (const Member& member : members_) {
      for (const auto& channel : member.channels) {
        if (channel->fd >= 0) fds.push_back({channel->fd, POLLIN, 0});
      }
    }
    poll(fds.data(), fds.size(), PollMilliseconds(NextDeadline()));
    for (Member& member : members_) Drain(&member);
  }

  absl::Time NextDeadline() const {
    if (!stopping_) return std::min({end_by_, ask_at_, NextRestart()});
    return WorkIsDone() ? std::min(ask_again_at_, kill_at_) : kill_at_;
  }

  void HandleSignals() {
    while (const int signal = signals_.Next()) {
      if (signal == SIGCHLD) continue;
      if (stopping_) {
        SignalAll(signal);
      } else {
        Fail(128 + signal, absl::StrCat("stopped by SIG", sigabbrev_np(signal)), signal);
      }
    }
    // On each call: several ends may share one SIGCHLD.
    int status = 0;
    while (const pid_t pid = waitpid(-1, &status, WNOHANG)) {
      if (pid < 0) break;
      OnEnded(pid, status);
    }
  }

  void OnEnded(pid_t pid, int status) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      Member& member = members_[i];
      if (member.pid != pid || !member.running) continue;
      member.running = false;
      Drain(&member);  // its last lines come before ours
      if (ExitCodeOf(status) == 0) {
        if (specs_[i].is_work && !all_joined_) ask_at_ = runtime::MonotonicNow();
        return;
      }
      if (MayRestart(i, status)) return;
      Fail(ExitCodeOf(status), DescribeEnd(specs_[i].name, status));
    }
  }

  // True if a replacement is started later. Not once the work is done.
  bool MayRestart(std::size_t i, int status) {
    if (stopping_ || WorkIsDone()) return false;
    const std::string end = DescribeEnd(specs_[i].name, status);
    if (!specs_[i].may_restart) {
      const std::string& why = specs_[i].stays_down_because;
      if (!why.empty()) options_.on_event(absl::StrCat(end, "; ", why));
      return false;
    }
    if (restarts_ >= options_.restarts_max) {
      options_.on_event(absl::StrCat(end, "; ", restarts_, " have been started again already, and ",
                                     options_.restarts_max, " may"));
      return false;
    }
    ++restarts_;
    members_[i].restart_at = In(options_.restart_pause);
    options_.on_event(absl::StrCat(end, "; another is started in its place (", restarts_, " of ",
                                   options_.restarts_max, ")"));
    return true;
  }

  // Those of the work that go on may wait for one that has ended.
  void FailIfNotAllJoined() {
    ask_at_ = absl::InfiniteFuture();
    if (WorkIsDone()) return;
    const std::optional<bool> all_joined = options_.all_joined();
    if (!all_joined.has_value()) {
      ask_at_ = In(kAskInterval);
      return;
    }
    all_joined_ = *all_joined;
    if (all_joined_) return;
    Fail(kNotOverCode,
         absl::StrCat(absl::StrJoin(Names(/*running=*/false, /*only_work=*/true), ", "),
                      " ended without having joined the cluster (Worker::Connect), and the other "
                      "workers wait for that in vain; stopping ",
                      absl::StrJoin(Names(/*running=*/true), ", ")));
  }

  absl::Time NextRestart() const {
    absl::Time next = absl::InfiniteFuture();
    for (const Member& member : members_) next = std::min(next, member.restart_at);
    return next;
  }

  void RestartWhoIsDue(absl::Time now) {
    for (std::size_t i = 0; i < members_.size() && !stopping_; ++i) {
      if (now < members_[i].restart_at) continue;
      members_[i].restart_at = absl::InfiniteFuture();
      std::erase_if(members_[i].channels, [](const auto& channel) { return channel->fd < 0; });
      StartOne(i);
    }
  }

  // The first failure counts; the others follow from it.
  void Fail(int exit_code, std::string failure, int signal = SIGTERM) {
    if (stopping_) return;
    result_ = {exit_code, std::move(failure)};
    Stop(signal);
  }

  void Stop(int signal) {
    stopping_ = true;
    ask_again_at_ = In(options_.ask_again);
    kill_at_ = In(options_.grace);
    SignalAll(signal);
  }

  // To the whole group of each: a shell script's children as well.
  void SignalAll(int signal) {
    for (const Member& member : members_) {
      if (member.running) kill(-member.pid, signal);
    }
  }

  // The work has ended, and those that serve it go on.
  std::string DescribeRest() const {
    return absl::StrCat(
        "the workers have ended, but the cluster has not: one of them never joined "
        "it or ended without leaving it (Worker::Leave, ~Worker); stopping ",
        absl::StrJoin(Names(/*running=*/true), ", "));
  }

  std::vector<absl::string_view> Names(bool running, bool only_work = false) const {
    std::vector<absl::string_view> names;
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (members_[i].running != running || (only_work && !specs_[i].is_work)) continue;
      names.push_back(specs_[i].name);
    }
    return names;
  }

  bool AnyRunning() const {
    for (const Member& member : members_) {
      if (member.running) return true;
    }
    return false;
  }
  bool WorkIsDone() const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].is_work && members_[i].running) return false;
    }
    return true;
  }

  const std::vector<ProcessSpec>& specs_;
  const SupervisorOptions& options_;
  Signals signals_;
  std::vector<Member> members_;
  std::uint32_t restarts_ = 0;
  bool stopping_ = false;
  bool ended_ = false;  // every process is dead: no more lines come
  bool all_joined_ = false;
  bool unread_ = false;  // the output cannot be written any more
  absl::Time end_by_ = absl::InfiniteFuture();
  absl::Time ask_at_ = absl::InfiniteFuture();
  absl::Time ask_again_at_ = absl::InfiniteFuture();
  absl::Time kill_at_ = absl::InfiniteFuture();
  SupervisorResult result_;
};

}  // namespace

SupervisorResult Supervise(const std::vector<ProcessSpec>& processes,
                           const SupervisorOptions& options) {
  return Supervisor(processes, options).Run();
}

std::string DescribeEnd(absl::string_view name, int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return absl::StrCat(name, " was killed by signal ", signal, " (", strsignal(signal), ")");
  }
  return absl::StrCat(name, " exited with code ", WEXITSTATUS(wait_status));
}

int ExitCodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace leeway::launch
