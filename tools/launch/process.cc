#include "tools/launch/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway::launch {
namespace {

struct Pipe {
  int read = -1;
  int write = -1;
};

class Pipes {
 public:
  ~Pipes() {
    for (const int fd : opened_) close(fd);
  }
  bool Open(Pipe* pipe) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    *pipe = {fds[0], fds[1]};
    opened_.insert({fds[0], fds[1]});
    return true;
  }
  int Release(int fd) {
    opened_.erase(fd);
    return fd;
  }
  void Close(int fd) { close(Release(fd)); }

 private:
  std::set<int> opened_;
};

std::vector<std::string> EnvironmentOf(const ProcessSpec& spec) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    const bool unset = std::find(spec.unset.begin(), spec.unset.end(), name) != spec.unset.end();
    if (!unset && spec.environment.count(name) == 0) result.push_back(*entry);
  }
  for (const auto& [name, value] : spec.environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child: its signal handling must not depend on the parent's.
void ResetSignals() {
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child. Returns only if the program cannot be run.
void Become(char* const* arguments, char* const* environment, int output, int errors,
            pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before this asked for a signal at its death
  ResetSignals();
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
      dup2(errors, STDERR_FILENO) < 0) {
    return;
  }
  if (nothing > STDERR_FILENO) close(nothing);
  execvpe(arguments[0], arguments, environment);
}

absl::Status Failure(const ProcessSpec& spec, int error) {
  const std::string text =
      absl::StrCat("cannot run '", spec.arguments[0], "': ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::FailedPreconditionError(text);
}

// The children of every process, by the process tables.
std::multimap<pid_t, pid_t> ChildrenByParent() {
  std::multimap<pid_t, pid_t> children;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) return children;
  while (const dirent* entry = readdir(directory)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid)) continue;
    std::ifstream file(absl::StrCat("/proc/", entry->d_name, "/stat"));
    std::string stat;
    std::getline(file, stat, '\0');
    // "pid (name) state parent …", where the name may hold anything.
    const std::size_t name_end = stat.rfind(')');
    char state = 0;
    pid_t parent = 0;
    if (name_end != std::string::npos &&
        std::sscanf(stat.c_str() + name_end + 1, " %c %d", &state, &parent) == 2) {
      children.emplace(parent, pid);
    }
  }
  closedir(directory);
  return children;
}

std::set<pid_t> Descendants(pid_t ancestor) {
  const std::multimap<pid_t, pid_t> children = ChildrenByParent();
  std::set<pid_t> found;
  std::vector<pid_t> open = {ancestor};
  while (!open.empty()) {
    const pid_t pid = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) {
      if (found.insert(child->second).second) open.push_back(child->second);
    }
  }
  return found;
}

}  // namespace

std::string OwnProgram() {
  constexpr char kLink[] = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path file = std::filesystem::read_symlink(kLink, error);
  // A program file that was replaced while it runs has no name any more; the link still runs it.
  return !error && std::filesystem::exists(file, error) ? file.string() : kLink;
}

std::vector<std::string> InheritedSettings() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (absl::StartsWith(name, "LEEWAY_") || absl::StartsWith(name, "DMLC_")) names.push_back(name);
  }
  return names;
}

absl::StatusOr<Process> Start(const ProcessSpec& spec) {
  std::vector<std::string> arguments = spec.arguments;
  std::vector<std::string> environment = EnvironmentOf(spec);
  const std::vector<char*> argument_pointers = Pointers(arguments);
  const std::vector<char*> environment_pointers = Pointers(environment);
  Pipes pipes;
  Pipe output, errors, failure;
  if (!pipes.Open(&output) || !pipes.Open(&errors) || !pipes.Open(&failure)) {
    return Failure(spec, errno);
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Failure(spec, errno);
  if (pid == 0) {
    Become(argument_pointers.data(), environment_pointers.data(), output.write, errors.write,
           parent);
    const int error = errno;
    if (write(failure.write, &error, sizeof(error)) < 0) _exit(126);
    _exit(127);
  }
  setpgid(pid, pid);  // here as well: the group exists whichever process runs first
  pipes.Close(failure.write);
  int error = 0;
  ssize_t got;
  do {
    got = read(failure.read, &error, sizeof(error));  // returns 0 when the program runs
  } while (got < 0 && errno == EINTR);
  if (got == sizeof(error)) {
    waitpid(pid, nullptr, 0);
    return Failure(spec, error);
  }
  fcntl(output.read, F_SETFL, O_NONBLOCK);
  fcntl(errors.read, F_SETFL, O_NONBLOCK);
  return Process{pid, pipes.Release(output.read), pipes.Release(errors.read)};
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

void KillDescendants() {
  // Repeatedly: processes that they start while being killed become our children as well.
  while (true) {
    for (const pid_t pid : Descendants(getpid())) kill(pid, SIGKILL);
    const pid_t reaped = waitpid(-1, nullptr, 0);
    if (reaped < 0 && errno == ECHILD) return;
  }
}

}  // namespace leeway::launch
