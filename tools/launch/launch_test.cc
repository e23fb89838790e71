// Starts real processes: short shell scripts.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/testing/temp_folder.h"
#include "tools/launch/cluster.h"
#include "tools/launch/guard.h"
#include "tools/launch/lines.h"
#include "tools/launch/log_files.h"
#include "tools/launch/output.h"
#include "tools/launch/supervisor.h"

namespace leeway::launch {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr int kPatienceMs = 60'000;  // for events that must come; a healthy machine needs far less

ProcessSpec Script(const std::string& name, const std::string& script, bool is_work = true) {
  return {name, {"/bin/sh", "-c", script}, {}, {}, is_work};
}

// The launcher in its own process, as `leeway launch` runs it, with its output in a pipe.
class Launcher {
 public:
  explicit Launcher(const std::vector<ProcessSpec>& processes,
                    absl::Duration grace = absl::Seconds(30),
                    absl::Duration end_grace = absl::Seconds(30), std::uint32_t restarts = 0,
                    std::optional<bool> all_joined = true) {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(fds[1], STDOUT_FILENO);
      dup2(fds[1], STDERR_FILENO);
      _exit(RunGuarded([&] { return Main(processes, grace, end_grace, restarts, all_joined); }));
    }
    close(fds[1]);
    output_ = fds[0];
  }
  ~Launcher() {
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      Wait();
    }
    close(output_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  pid_t pid() const { return pid_; }

  // All lines until every writer has closed the pipe.
  std::vector<std::string> AllLines() {
    while (ReadMore()) {
    }
    std::vector<std::string> lines = absl::StrSplit(text_, '\n', absl::SkipEmpty());
    return lines;
  }

  // Numbers printed by a script, once `count` have come.
  std::vector<pid_t> Pids(std::size_t count) {
    std::vector<pid_t> pids;
    do {
      pids.clear();
      const std::size_t whole = text_.rfind('\n');
      if (whole == std::string::npos) continue;
      for (absl::string_view word : absl::StrSplit(text_.substr(0, whole), ' ')) {
        for (absl::string_view part : absl::StrSplit(word, '\n')) {
          pid_t pid;
          if (absl::SimpleAtoi(part, &pid) && pid > 1) pids.push_back(pid);
        }
      }
    } while (pids.size() < count && ReadMore());
    EXPECT_EQ(pids.size(), count) << text_;
    return pids;
  }

  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return ExitCodeOf(status);
  }

 private:
  static int Main(const std::vector<ProcessSpec>& processes, absl::Duration grace,
                  absl::Duration end_grace, std::uint32_t restarts,
                  std::optional<bool> all_joined) {
    SupervisorOptions options;
    options.grace = grace;
    options.end_grace = end_grace;
    options.restarts_max = restarts;
    options.restart_pause = absl::Milliseconds(1);
    // First it is not known.
    options.all_joined = [all_joined, asked = false]() mutable {
      return std::exchange(asked, true) ? all_joined : std::nullopt;
    };
    options.on_event = [](absl::string_view line) {
      WriteAll(STDERR_FILENO, absl::StrCat(line, "\n"));
    };
    options.on_line = [&](std::size_t i, Stream stream, absl::string_view line) {
      return PrintPrefixed(processes[i].name, i, stream, line);
    };
    const SupervisorResult result = Supervise(processes, options);
    if (!result.failure.empty()) WriteAll(STDERR_FILENO, absl::StrCat(result.failure, "\n"));
    return result.exit_code;
  }

  bool ReadMore() {
    pollfd ready = {output_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) != 1) return false;
    char bytes[4096];
    const ssize_t got = read(output_, bytes, sizeof(bytes));
    if (got > 0) text_.append(bytes, static_cast<std::size_t>(got));
    return got > 0;
  }

  pid_t pid_;
  int output_;
  std::string text_;
};

// Watches a process that is not a child of the test.
class Watched {
 public:
  explicit Watched(pid_t pid) : fd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {}
  ~Watched() {
    if (fd_ >= 0) close(fd_);
  }
  Watched(Watched&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Watched& operator=(Watched&&) = delete;

  bool Ends() const {
    pollfd ready = {fd_, POLLIN, 0};
    return fd_ < 0 || poll(&ready, 1, kPatienceMs) == 1;
  }

 private:
  int fd_;
};

// A process with a child in its group and one in a session of its own, which ignore all signals but
// SIGKILL. It prints the three ids.
constexpr char kFamily[] =
    "trap '' TERM INT HUP; sleep 1000 & a=$!; setsid sh -c 'trap \"\" TERM INT HUP; echo $$; "
    "exec sleep 1000' & echo $$ $a; wait";

TEST(LaunchTest, SuccessIsZeroAndSilent) {
  Launcher launcher({Script("worker 0", "true"), Script("worker 1", "exit 0")});
  EXPECT_THAT(launcher.AllLines(), ElementsAre());
  EXPECT_EQ(launcher.Wait(), 0);
}

TEST(LaunchTest, PrefixesEveryLineOfBothStreams) {
  Launcher launcher(
      {Script("server 1", "echo one; echo two >&2"), Script("worker 0", "echo three")});
  EXPECT_THAT(launcher.AllLines(),
              UnorderedElementsAre("server 1 | one", "server 1 | two", "worker 0 | three"));
  EXPECT_EQ(launcher.Wait(), 0);
}

TEST(LaunchTest, CompletesLinesWrittenInParts) {
  Launcher launcher({Script("worker 0", "printf a; printf b; printf 'c\\nd'")});
  EXPECT_THAT(launcher.AllLines(), ElementsAre("worker 0 | abc", "worker 0 | d"));
}

// A server that fails `failures` times and then serves, and a worker that runs until it does. The
// server ends with the worker.
std::vector<ProcessSpec> FailingServer(const std::string& folder, int failures) {
  ProcessSpec server =
      Script("server 0",
             absl::StrCat("n=$(cat ", folder, "/n 2>/dev/null || echo 0); echo $((n + 1)) > ",
                          folder, "/n; [ $n -lt ", failures, " ] && kill -9 $$; touch ", folder,
                          "/up; while [ ! -e ", folder, "/over ]; do sleep 0.01; done"),
             false);
  server.may_restart = true;
  return {server, Script("worker 0", absl::StrCat("while [ ! -e ", folder, "/up ]; do sleep 0.01; ",
                                                  "done; touch ", folder, "/over"))};
}

TEST(LaunchTest, AServerThatFailsIsStartedAgain) {
  const runtime::TempFolder temp_folder;
  const std::string& folder = temp_folder.path();
  Launcher launcher(FailingServer(folder, 2), absl::Seconds(30), absl::Seconds(30), 2);
  EXPECT_THAT(launcher.AllLines(),
              ElementsAre("server 0 was killed by signal 9 (Killed); another is started in its "
                          "place (1 of 2)",
                          "server 0 was killed by signal 9 (Killed); another is started in its "
                          "place (2 of 2)"));
  EXPECT_EQ(launcher.Wait(), 0);
}

TEST(LaunchTest, ButNotForEver) {
  const runtime::TempFolder temp_folder;
  const std::string& folder = temp_folder.path();
  Launcher launcher(FailingServer(folder, 100), absl::Seconds(30), absl::Seconds(30), 2);
  const std::vector<std::string> lines = launcher.AllLines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[2], HasSubstr("2 have been started again already, and 2 may"));
  EXPECT_EQ(lines[3], "server 0 was killed by signal 9 (Killed)");
  EXPECT_EQ(launcher.Wait(), 128 + 9);
}

TEST(LogFilesTest, KeepsTheLinesOfEachProcess) {
  const runtime::TempFolder temp_folder;
  const std::string folder = temp_folder.path() + "/logs";
  {
    auto logs = LogFiles::Open(folder, {Script("server 1", ""), Script("worker 0", "")});
    ASSERT_TRUE(logs.ok()) << logs.status();
    logs->Add(1, "b");
    logs->Add(0, "a");
    logs->Add(1, "c");
  }
  std::ifstream server(folder + "/server-1.log"), worker(folder + "/worker-0.log");
  std::string line;
  EXPECT_TRUE(std::getline(server, line) && line == "a");
  EXPECT_TRUE(std::getline(worker, line) && line == "b");
  EXPECT_TRUE(std::getline(worker, line) && line == "c");
  EXPECT_THAT(std::string(LogFiles::Open("/proc/x", {Script("a", "")}).status().message()),
              HasSubstr("--log-dir /proc/x"));
}

TEST(LaunchTest, ReturnsTheFirstFailuresCodeAndSaysWho) {
  // The second fails only because it is stopped after the first has failed.
  Launcher launcher({Script("server 0", "trap 'exit 9' TERM; sleep 1000 & wait", false),
                     Script("worker 0", "exit 3")});
  EXPECT_THAT(launcher.AllLines(), ElementsAre("worker 0 exited with code 3"));
  EXPECT_EQ(launcher.Wait(), 3);
}

TEST(LaunchTest, ADeathBySignalIsAFailure) {
  Launcher launcher({Script("worker 0", "kill -9 $$"), Script("worker 1", "sleep 1000")});
  EXPECT_THAT(launcher.AllLines(), ElementsAre("worker 0 was killed by signal 9 (Killed)"));
  EXPECT_EQ(launcher.Wait(), 128 + 9);
}

TEST(LaunchTest, AProgramThatIsNotThere) {
  Launcher launcher({Script("server 0", "sleep 1000", false),
                     {"worker 0", {"/no/such/program", "x"}, {}, {}, true}});
  EXPECT_THAT(launcher.AllLines(), ElementsAre("worker 0: cannot run '/no/such/program': No such "
                                               "file or directory"));
  EXPECT_EQ(launcher.Wait(), 127);
}

TEST(LaunchTest, AFileThatCannotBeRun) {
  Launcher launcher({{"worker 0", {"/dev/null"}, {}, {}, true}});
  EXPECT_THAT(launcher.AllLines(),
              ElementsAre("worker 0: cannot run '/dev/null': Permission denied"));
  EXPECT_EQ(launcher.Wait(), 127);
}

TEST(LaunchTest, AClusterThatOutlivesItsWorkersIsStoppedAndIsAFailure) {
  Launcher launcher({Script("scheduler", "sleep 1000", false), Script("worker 0", "true")},
                    absl::Seconds(30), absl::Milliseconds(1));
  EXPECT_THAT(launcher.AllLines(),
              ElementsAre(testing::AllOf(HasSubstr("never joined it or ended without leaving it"),
                                         EndsWith("stopping scheduler"))));
  EXPECT_EQ(launcher.Wait(), 1);
}

TEST(LaunchTest, AWorkerThatEndsWithoutHavingJoinedEndsThoseThatWaitForIt) {
  Launcher launcher({Script("scheduler", "sleep 1000", false), Script("worker 0", "sleep 1000"),
                     Script("worker 1", "true")},
                    absl::Seconds(30), absl::Seconds(30), /*restarts=*/0, /*all_joined=*/false);
  EXPECT_THAT(launcher.AllLines(),
              ElementsAre("worker 1 ended without having joined the cluster (Worker::Connect), and "
                          "the other workers wait for that in vain; stopping scheduler, worker 0"));
  EXPECT_EQ(launcher.Wait(), 1);
}

TEST(LaunchTest, ServersAreAskedAgainOnceTheWorkHasEnded) {
  Launcher launcher(
      {Script("server 0",
              "trap 'n=$((n + 1)); [ $n = 2 ] && echo twice && exit 0' TERM; echo $$; "
              "while :; do sleep 1000 & wait; done",
              false),
       Script("worker 0", "sleep 1000")});
  launcher.Pids(1);
  kill(launcher.pid(), SIGTERM);
  EXPECT_THAT(launcher.AllLines(), testing::Contains("server 0 | twice"));
  EXPECT_EQ(launcher.Wait(), 128 + SIGTERM);
}

TEST(LaunchTest, PassesSignalsOn) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Launcher launcher(
        {Script("worker 0",
                "for s in INT TERM HUP; do trap \"echo got $s; exit 0\" $s; done; echo $$; "
                "sleep 1000 & wait")});
    launcher.Pids(1);
    kill(launcher.pid(), signal);
    const std::vector<std::string> lines = launcher.AllLines();
    EXPECT_THAT(lines, testing::Contains(absl::StrCat("worker 0 | got ", sigabbrev_np(signal))));
    EXPECT_EQ(lines.back(), absl::StrCat("stopped by SIG", sigabbrev_np(signal)));
    EXPECT_EQ(launcher.Wait(), 128 + signal);
  }
}

TEST(LaunchTest, AProcessThatDoesNotListenIsKilled) {
  Launcher launcher({Script("worker 0", kFamily)}, absl::Milliseconds(50));
  std::vector<Watched> family;
  for (const pid_t pid : launcher.Pids(3)) family.emplace_back(pid);
  kill(launcher.pid(), SIGTERM);
  for (const Watched& member : family) EXPECT_TRUE(member.Ends());
  EXPECT_EQ(launcher.Wait(), 128 + SIGTERM);
}

TEST(LaunchTest, ProcessesLeftBehindByAWorkerAreKilled) {
  Launcher launcher({Script("worker 0", "sleep 1000 & setsid sleep 1000 & echo $!")});
  const Watched left(launcher.Pids(1)[0]);
  EXPECT_TRUE(left.Ends());
  EXPECT_EQ(launcher.Wait(), 0);
}

TEST(LaunchTest, NothingIsLeftWhenTheLauncherIsKilled) {
  Launcher launcher(
      {Script("server 0", "echo $$; exec sleep 1000", false), Script("worker 0", kFamily)},
      absl::Milliseconds(50));
  std::vector<Watched> family;
  for (const pid_t pid : launcher.Pids(4)) family.emplace_back(pid);
  kill(launcher.pid(), SIGKILL);
  for (const Watched& member : family) EXPECT_TRUE(member.Ends());
  EXPECT_EQ(launcher.Wait(), 128 + SIGKILL);
}

TEST(LaunchTest, NothingIsLeftWhenTheSupervisorIsKilled) {
  Launcher launcher({Script("worker 0", absl::StrCat("echo $PPID; ", kFamily))});
  const std::vector<pid_t> pids = launcher.Pids(4);
  std::vector<Watched> family;
  for (const pid_t pid : pids) family.emplace_back(pid);
  kill(pids[0], SIGKILL);
  for (const Watched& member : family) EXPECT_TRUE(member.Ends());
  EXPECT_THAT(launcher.AllLines().back(), EndsWith("the launcher was killed by signal 9 (Killed)"));
  EXPECT_EQ(launcher.Wait(), 128 + SIGKILL);
}

TEST(LaunchTest, OneWhoNeverStopsWritingDoesNotHideTheOthersEnd) {
  Launcher launcher(
      {Script("server 0", "while :; do echo y; done", false), Script("worker 0", "exit 4")});
  EXPECT_EQ(launcher.AllLines().back(), "worker 0 exited with code 4");
  EXPECT_EQ(launcher.Wait(), 4);
}

TEST(LaunchTest, EndsWhenNobodyReads) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    close(fds[0]);
    dup2(fds[1], STDOUT_FILENO);
    _exit(RunGuarded([] {
      SupervisorOptions options;
      options.on_line = [](std::size_t, Stream, absl::string_view line) {
        return WriteAll(STDOUT_FILENO, line);
      };
      return Supervise({Script("worker 0", "while :; do echo y; done")}, options).exit_code;
    }));
  }
  close(fds[0]);
  close(fds[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(ExitCodeOf(status), 128 + SIGPIPE);
}

TEST(LinesTest, CutsAndKeepsTheRest) {
  std::vector<std::string> lines;
  Lines cutter([&](absl::string_view line) { lines.emplace_back(line); });
  cutter.Add("a\n\nb");
  cutter.Add("c");
  EXPECT_THAT(lines, ElementsAre("a", ""));
  cutter.Add("\nd");
  cutter.End();
  cutter.End();
  EXPECT_THAT(lines, ElementsAre("a", "", "bc", "d"));
}

TEST(LinesTest, GivesEndlessLinesInParts) {
  std::vector<std::size_t> sizes;
  Lines cutter([&](absl::string_view line) { sizes.push_back(line.size()); });
  cutter.Add(std::string(2 * Lines::kLineBytesMax + 5, 'x'));
  cutter.Add("\n");
  EXPECT_THAT(sizes, ElementsAre(Lines::kLineBytesMax, Lines::kLineBytesMax, 5));
}

TEST(OutputTest, ColoursThePrefixOnly) {
  EXPECT_EQ(Prefixed("server 1", 2, "x", false), "server 1 | x\n");
  EXPECT_EQ(Prefixed("server 1", 2, "x", true), "\033[32mserver 1 |\033[0m x\n");
}

ClusterSpec SmallCluster() {
  ClusterSpec cluster;
  cluster.servers = 2;
  cluster.workers = 3;
  cluster.leeway = "/bin/leeway";
  cluster.program = {"prog", "arg"};
  return cluster;
}

TEST(PlanClusterTest, TellsEveryoneItsPlace) {
  const auto processes = PlanCluster(SmallCluster());
  ASSERT_TRUE(processes.ok()) << processes.status();
  std::vector<std::string> names;
  for (const ProcessSpec& process : *processes) {
    names.push_back(process.name);
    EXPECT_EQ(process.environment.at("LEEWAY_NUM_SERVERS"), "2");
    EXPECT_EQ(process.environment.at("LEEWAY_NUM_WORKERS"), "3");
    EXPECT_TRUE(absl::StartsWith(process.environment.at("LEEWAY_SCHEDULER"), "127.0.0.1:"));
    EXPECT_EQ(process.environment.at("LEEWAY_ROLE"),
              process.name.substr(0, process.name.find(' ')));
    EXPECT_EQ(process.is_work, absl::StartsWith(process.name, "worker"));
    EXPECT_THAT(process.unset, testing::Contains("DMLC_ROLE"));
  }
  EXPECT_THAT(names,
              ElementsAre("scheduler", "server 0", "server 1", "worker 0", "worker 1", "worker 2"));
  EXPECT_THAT((*processes)[2].arguments, ElementsAre("/bin/leeway", "server"));
  EXPECT_EQ((*processes)[2].environment.at("LEEWAY_RANK"), "1");
  EXPECT_THAT((*processes)[5].arguments, ElementsAre("prog", "arg"));
}

TEST(PlanClusterTest, RefusesWhatMakesNoCluster) {
  ClusterSpec cluster = SmallCluster();
  cluster.workers = 0;
  EXPECT_EQ(PlanCluster(cluster).status().message(), "a cluster has 1 to 4096 workers, not 0");
  cluster = SmallCluster();
  cluster.servers = 5000;
  EXPECT_THAT(std::string(PlanCluster(cluster).status().message()), HasSubstr("servers, not 5000"));
  cluster = SmallCluster();
  cluster.program.clear();
  EXPECT_FALSE(PlanCluster(cluster).ok());
}

TEST(PlanClusterTest, AChildSeesItsPlaceAndNoLeftovers) {
  setenv("DMLC_ROLE", "server", 1);
  setenv("LEEWAY_RANK", "7", 1);
  ClusterSpec cluster = SmallCluster();
  cluster.workers = 1;
  cluster.scheduler = "10.0.0.1:99";
  cluster.program = {"/bin/sh", "-c",
                     "echo $LEEWAY_ROLE $LEEWAY_RANK $LEEWAY_SCHEDULER ${DMLC_ROLE:-none}"};
  const auto processes = PlanCluster(cluster);
  ASSERT_TRUE(processes.ok());
  Launcher launcher({processes->back()});
  EXPECT_THAT(launcher.AllLines(), ElementsAre("worker 0 | worker 0 10.0.0.1:99 none"));
  unsetenv("DMLC_ROLE");
  unsetenv("LEEWAY_RANK");
}

}  // namespace
}  // namespace leeway::launch
