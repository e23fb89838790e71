// `leeway-mutants`: switches on one known bug at a time, and prints which seed or test finds it.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/log/log.h"
#include "tests/mutants/catalogue.h"
#include "tests/mutants/planted.h"
#include "tests/simulation/seed_runner.h"

namespace leeway::mutants {
namespace {

constexpr int kTestSeconds = 60;       // a test that takes longer hangs
constexpr unsigned kSeedSeconds = 10;  // a seed that takes longer on average hangs
constexpr int kTimeoutCode = 124;      // of timeout(1)
// The name of no bug. A test that fails whenever LEEWAY_MUTANT is set would seem to find every bug.
constexpr absl::string_view kNoBug = "none";

// A bug may be a limit that does not hold: its test must not take the memory of the machine.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
constexpr absl::string_view kMemoryLimit = "ASAN_OPTIONS=\"$ASAN_OPTIONS:hard_rss_limit_mb=6144\" ";
#else
constexpr absl::string_view kMemoryLimit = "ulimit -v 16777216; ";  // KiB
#endif

struct Verdict {
  bool caught = false;
  std::string text;
};

// The end of a test program that has the bug.
struct TestRun {
  int code = 0;
  std::string failed;  // the first test that failed, as far as the program got to say so
};

TestRun RunTest(const std::filesystem::path& build, absl::string_view test, absl::string_view bug) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(test, absl::MaxSplits(' ', 1));
  const std::string command =
      absl::StrCat(kMemoryLimit, "LEEWAY_MUTANT=", bug, " timeout -k 5 ", kTestSeconds, " '",
                   (build / std::string(parts.first)).string(), "' --gtest_filter='", parts.second,
                   "' 2>/dev/null");
  TestRun run;
  run.code = 128;
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return run;
  char line[512];
  while (std::fgets(line, sizeof(line), output) != nullptr) {
    constexpr absl::string_view kFailed = "[  FAILED  ] ";
    if (run.failed.empty() && absl::StartsWith(line, kFailed)) {
      const std::vector<absl::string_view> words =
          absl::StrSplit(absl::string_view(line).substr(kFailed.size()), absl::ByAnyChar(" \n,"));
      run.failed = std::string(words[0]);
    }
  }
  const int status = pclose(output);
  if (WIFEXITED(status)) run.code = WEXITSTATUS(status);
  return run;
}

class Trial {
 public:
  explicit Trial(simulation::Campaign campaign) : campaign_(std::move(campaign)) {
    // <build>/tests/mutants/leeway-mutants
    build_ =
        std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().parent_path();
  }

  Verdict Of(const KnownBug& bug) { return bug.test.empty() ? OfSeeds(bug) : OfTest(bug); }

 private:
  Verdict OfTest(const KnownBug& bug) {
    const std::string test(bug.test);
    if (!healthy_.contains(test)) healthy_[test] = RunTest(build_, test, kNoBug).code == 0;
    if (!healthy_[test]) return {false, absl::StrCat(test, " fails without it, or is not built")};
    const TestRun run = RunTest(build_, test, bug.name);
    if (run.code == 0) return {false, absl::StrCat(test, " passes with it")};
    const std::string program = test.substr(0, test.find(' '));
    if (run.code == kTimeoutCode) return {true, absl::StrCat(test, ", which hangs")};
    return {true, absl::StrCat(program, " ", run.failed.empty() ? "which crashes" : run.failed)};
  }

  // In a process of its own: a wrong program may crash, or never end.
  Verdict OfSeeds(const KnownBug& bug) {
    int ends[2];
    if (pipe(ends) != 0) return {false, "no pipe can be opened"};
    const pid_t child = fork();
    if (child == 0) RunSeeds(bug, ends[1]);
    close(ends[1]);
    std::string told;
    char bytes[512];
    for (ssize_t got; (got = read(ends[0], bytes, sizeof(bytes))) > 0;) {
      told.append(bytes, static_cast<std::size_t>(got));
    }
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
      return {true, WTERMSIG(status) == SIGALRM ? "a seed, which hangs" : "a seed, which crashes"};
    }
    if (WEXITSTATUS(status) != 0) return {true, "a seed, which crashes"};
    if (told.empty()) return {false, absl::StrCat("none of ", campaign_.seeds, " seeds")};
    return {true, told};
  }

  [[noreturn]] void RunSeeds(const KnownBug& bug, int to) {
    campaign_.options.over_rdma = bug.over_rdma;
    alarm(static_cast<unsigned>(campaign_.seeds) * kSeedSeconds);
    runtime::PlantMutant(std::string(bug.name));
    const std::optional<simulation::SeedResult> failure = simulation::FirstFailure(campaign_);
    std::string told;
    if (failure.has_value()) {
      told = absl::StrCat("seed ", failure->seed, ": ", failure->violation->invariant);
    }
    _exit(write(to, told.data(), told.size()) < 0 ? 1 : 0);
  }

  simulation::Campaign campaign_;
  std::filesystem::path build_;
  std::map<std::string, bool> healthy_;  // tests, without a bug
};

std::vector<KnownBug> Chosen(const std::string& only, double share, bool tests_only,
                             bool seeds_only) {
  std::vector<KnownBug> bugs;
  for (KnownBug bug : Catalogue()) {
    if (seeds_only && bug.seeds_too) bug.test = "";
    if (bug.test.empty() ? tests_only : seeds_only) continue;
    const bool named = absl::StrContains(bug.name, only) || absl::StrContains(bug.file, only);
    if (named) bugs.push_back(bug);
  }
  if (share >= 1) return bugs;
  std::shuffle(bugs.begin(), bugs.end(), std::random_device());
  bugs.resize(static_cast<std::size_t>(static_cast<double>(bugs.size()) * share + 0.5));
  return bugs;
}

// Prints a line as soon as it is known, and counts.
class Table {
 public:
  void Harmless(const KnownBug& bug) {
    Print(bug, absl::StrCat("harmless: ", bug.harmless), &harmless_);
  }
  void Add(const KnownBug& bug, const Verdict& verdict) {
    Print(bug, absl::StrCat(verdict.caught ? "caught by " : "SURVIVED: ", verdict.text),
          verdict.caught ? &caught_ : &survived_);
  }
  // The exit code.
  int Sum() const {
    std::cout << caught_ << " caught, " << survived_ << " survived, " << harmless_ << " harmless"
              << std::endl;
    return survived_ == 0 && caught_ + harmless_ > 0 ? 0 : 1;
  }

 private:
  void Print(const KnownBug& bug, const std::string& text, int* count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++*count;
    std::cout << std::left << std::setw(40) << bug.name << " " << text << std::endl;
  }

  std::mutex mutex_;
  int caught_ = 0, survived_ = 0, harmless_ = 0;
};

// Tests run in processes of their own, several at a time; seeds use all cores by themselves.
int Run(const std::vector<KnownBug>& bugs, const simulation::Campaign& campaign) {
  Table table;
  std::vector<KnownBug> by_tests;
  for (const KnownBug& bug : bugs) {
    if (!bug.harmless.empty()) {
      table.Harmless(bug);
    } else if (!bug.test.empty()) {
      by_tests.push_back(bug);
    }
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < campaign.jobs; ++i) {
    threads.emplace_back([&] {
      Trial trial(campaign);
      for (std::size_t mine; (mine = next++) < by_tests.size();) {
        table.Add(by_tests[mine], trial.Of(by_tests[mine]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Trial trial(campaign);
  for (const KnownBug& bug : bugs) {
    if (bug.harmless.empty() && bug.test.empty()) table.Add(bug, trial.Of(bug));
  }
  return table.Sum();
}

void List(const std::vector<KnownBug>& bugs) {
  for (const KnownBug& bug : bugs) {
    std::cout << bug.name << " (" << bug.file << "): " << bug.what << "; breaks: " << bug.promise
              << "\n";
  }
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Switches on one known bug at a time (tests/mutants/edits/) and prints which "
      "seed of the simulator, or which test, finds it.");
  simulation::Campaign campaign;
  campaign.seeds = 500;
  campaign.jobs = std::max(1u, std::thread::hardware_concurrency());
  std::string only;
  double share = 1;
  bool mutants = false, list = false, tests_only = false, seeds_only = false;
  app.add_flag("--mutants", mutants, "no effect: for `./dev sim --mutants`");
  app.add_option("--only", only, "only bugs whose name or file contains this");
  app.add_option("--share", share, "only a share of the bugs, chosen anew each time")
      ->check(CLI::Range(0.0, 1.0));
  app.add_flag("--tests-only", tests_only, "only bugs that a test finds, which is fast");
  app.add_flag("--seeds-only", seeds_only, "only bugs that seeds find");
  app.add_option("--seeds", campaign.seeds, "number of seeds that look for a bug")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--start", campaign.start, "first seed")->capture_default_str();
  app.add_option("--jobs", campaign.jobs, "number of seeds that run at a time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--list", list, "only list the bugs");
  CLI11_PARSE(app, argc, argv);
  runtime::SetLogLevel(runtime::LogLevel::kOff);
  const std::vector<KnownBug> bugs = Chosen(only, share, tests_only, seeds_only);
  if (list) {
    List(bugs);
    return 0;
  }
  return Run(bugs, campaign);
}

}  // namespace
}  // namespace leeway::mutants

int main(int argc, char** argv) { return leeway::mutants::Main(argc, argv); }
