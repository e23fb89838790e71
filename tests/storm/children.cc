#include "tests/storm/children.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/monotonic_time.h"
#include "tools/launch/signals.h"

namespace leeway::storm {

Child::Child(std::string name, const launch::Process& process, OnLine on_line)
    : name_(std::move(name)), pid_(process.pid), on_line_(std::move(on_line)) {
  for (const auto& [stream, fd] : {std::pair(launch::Stream::kOutput, process.output),
                                   std::pair(launch::Stream::kErrors, process.errors)}) {
    channels_.push_back(std::make_unique<Channel>(
        Channel{fd, launch::Lines([this, stream = stream](absl::string_view line) {
                  if (stream == launch::Stream::kErrors) last_words_ = std::string(line);
                  on_line_(stream, line);
                })}));
  }
}

Child::~Child() {
  if (running()) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  for (auto& channel : channels_) {
    if (channel->fd >= 0) close(channel->fd);
  }
}

void Child::Signal(int signal) {
  if (running()) kill(pid_, signal);
}

void Child::Read(bool to_the_end) {
  for (auto& channel : channels_) {
    if (channel->fd < 0) continue;
    char bytes[16 << 10];
    ssize_t got;
    while ((got = read(channel->fd, bytes, sizeof(bytes))) > 0 || (got < 0 && errno == EINTR)) {
      if (got > 0) channel->lines.Add({bytes, static_cast<std::size_t>(got)});
    }
    if (got < 0 && !to_the_end) continue;
    channel->lines.End();
    close(std::exchange(channel->fd, -1));
  }
}

bool Child::Reap() {
  int status = 0;
  if (running() && waitpid(pid_, &status, WNOHANG) == pid_) {
    Read(/*to_the_end=*/true);  // its last lines come before its end
    exit_code_ = launch::ExitCodeOf(status);
  }
  return !running();
}

absl::StatusOr<Child*> Children::Start(launch::ProcessSpec spec, Child::OnLine on_line) {
  spec.unset = launch::InheritedSettings();
  absl::StatusOr<launch::Process> process = launch::Start(spec);
  if (!process.ok()) return process.status();
  children_.push_back(std::make_unique<Child>(spec.name, *process, std::move(on_line)));
  return children_.back().get();
}

void Children::Forget(const Child* child) {
  std::erase_if(children_, [&](const auto& own) { return own.get() == child; });
}

void Children::Poll(absl::Duration patience) {
  std::vector<pollfd> fds;
  for (const auto& child : children_) {
    for (const auto& channel : child->channels_) {
      if (channel->fd >= 0) fds.push_back({channel->fd, POLLIN, 0});
    }
  }
  poll(fds.data(), fds.size(), launch::PollMilliseconds(runtime::MonotonicNow() + patience));
  for (const auto& child : children_) {
    child->Read(/*to_the_end=*/false);
    child->Reap();
  }
}

}  // namespace leeway::storm
