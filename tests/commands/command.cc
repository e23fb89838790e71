#include "tests/commands/command.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "runtime/log/log.h"
#include "runtime/memory/sanitized.h"

namespace leeway::tests {
namespace {

// "2026-05-04T03:02:01.000+00:00 info …"
bool IsLogLine(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  absl::Time time;
  std::string error;
  return words.size() == 3 && runtime::ParseLogLevel(words[1]).has_value() &&
         absl::ParseTime(absl::RFC3339_full, words[0], &time, &error);
}

std::vector<std::string> Lines(const std::string& text, bool of_the_log) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  std::erase_if(lines, [&](const std::string& line) { return IsLogLine(line) != of_the_log; });
  return lines;
}

int ExitCodeOf(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Appends the bytes that can be read. False at the end of the stream.
bool Drain(int fd, std::string* text) {
  char bytes[4096];
  while (true) {
    const ssize_t got = read(fd, bytes, sizeof(bytes));
    if (got > 0) {
      text->append(bytes, static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      return got < 0 && errno == EAGAIN;
    }
  }
}

// Kills a process and its group, and waits for the end of each. Returns the exit status of the
// leader. Children of a killed leader are adopted by this process (a sanitizer's leak check runs in
// such a child) and take a moment to end.
int KillGroup(pid_t leader) {
  kill(-leader, SIGKILL);
  int status = 0;
  waitpid(leader, &status, 0);
  while (waitpid(-leader, nullptr, 0) > 0 || errno == EINTR) {
  }
  return status;
}

}  // namespace

std::vector<std::string> PlainLines(const std::string& errors) { return Lines(errors, false); }
std::vector<std::string> LogLines(const std::string& errors) { return Lines(errors, true); }

Command::Command(std::vector<std::string> arguments, const Environment& environment) {
  launch::AdoptOrphans();
  absl::StatusOr<launch::Process> process =
      launch::Start({arguments[0], std::move(arguments), environment, launch::InheritedSettings()});
  EXPECT_TRUE(process.ok()) << process.status();
  if (process.ok()) process_ = *process;
}

Command::~Command() { Kill(); }

void Command::Kill() {
  if (process_.pid <= 0) return;
  KillGroup(process_.pid);
  process_.pid = 0;
  for (int* fd : {&process_.output, &process_.errors}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
}

bool Command::ReadUntil(absl::Time deadline) {
  pollfd fds[] = {{process_.output, POLLIN, 0}, {process_.errors, POLLIN, 0}};
  const std::int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
  if (left_ms <= 0 || (fds[0].fd < 0 && fds[1].fd < 0)) return false;
  if (poll(fds, 2, static_cast<int>(left_ms)) < 0) return errno == EINTR;
  if (fds[0].revents != 0 && !Drain(process_.output, &output_)) {
    close(std::exchange(process_.output, -1));
  }
  if (fds[1].revents != 0 && !Drain(process_.errors, &errors_)) {
    close(std::exchange(process_.errors, -1));
  }
  return true;
}

bool Command::Wait(const std::function<bool()>& enough) {
  const absl::Time deadline = absl::Now() + Patience();
  while (!enough()) {
    if (!ReadUntil(deadline)) return false;
  }
  return true;
}

bool Command::Says(const std::string& text) {
  return Wait([&] { return absl::StrContains(output_, text) || absl::StrContains(errors_, text); });
}

std::string Command::ErrorLineWith(const std::string& text) {
  std::string found;
  Wait([&] {
    const std::string whole = errors_.substr(0, errors_.rfind('\n') + 1);
    for (absl::string_view line : absl::StrSplit(whole, '\n')) {
      if (found.empty() && absl::StrContains(line, text)) found = std::string(line);
    }
    return !found.empty();
  });
  return found;
}

void Command::Signal(int signal) { kill(process_.pid, signal); }

Ended Command::Finish(absl::Duration within) {
  Ended ended;
  if (process_.pid <= 0) return ended;
  const absl::Time deadline = absl::Now() + within;
  while (ReadUntil(deadline)) {
  }
  // Both streams have ended, or it is late.
  ended.in_time = process_.output < 0 && process_.errors < 0;
  int status = 0;
  if (ended.in_time) {
    waitpid(process_.pid, &status, 0);
  } else {
    status = KillGroup(process_.pid);
  }
  process_.pid = 0;
  ended.code = ExitCodeOf(status);
  ended.output = output_;
  ended.errors = errors_;
  return ended;
}

Ended RunToEnd(std::vector<std::string> arguments, const Environment& environment) {
  return Command(std::move(arguments), environment).Finish(Patience());
}

bool NothingRuns() {
  pid_t ended;
  do {
    ended = waitpid(-1, nullptr, WNOHANG);  // adopted children that have ended meanwhile
  } while (ended > 0);
  return ended < 0 && errno == ECHILD;
}

absl::Duration Patience() { return runtime::kSanitized ? absl::Seconds(60) : absl::Seconds(20); }

}  // namespace leeway::tests
