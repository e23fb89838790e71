// Processes that end while a leaver is under way: the test forks them.
#include "worker/client/leavers.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>

#include "gtest/gtest.h"
#include "runtime/memory/sanitized.h"

namespace leeway::worker {
namespace {

constexpr int kLeft = 7;

// The exit code of a child that does so.
int CodeOfChild(void (*child)()) {
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    std::_Exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(LeaversTest, TheEndOfAProcessWaitsForThem) {
  const int code = CodeOfChild([] {
    static auto& exiting = *new std::promise<void>;
    static std::atomic<bool> closed = false;
    std::atexit([] { std::_Exit(closed ? kLeft : 0); });  // runs right after the wait
    StartLeaver(
        absl::Hours(1), [] { exiting.get_future().wait(); }, [] { closed = true; });
    std::atexit([] { exiting.set_value(); });  // and this before it
    std::exit(0);
  });
  EXPECT_EQ(code, kLeft);
}

TEST(LeaversTest, TheEndOfAProcessWaitsNoLongerThanTheirTimeout) {
  const int code = CodeOfChild([] {
    StartLeaver(
        absl::Milliseconds(1), [] { std::promise<void>().get_future().wait(); }, [] {});
    std::exit(0);
  });
  EXPECT_EQ(code, 0);
}

TEST(LeaversTest, AChildWaitsForItsOwnAlone) {
  if (runtime::kThreadSanitized) GTEST_SKIP() << "a child may start no threads under TSan";
  std::promise<void> go_on;
  StartLeaver(
      absl::Hours(1), [&] { go_on.get_future().wait(); }, [] {});
  EXPECT_EQ(CodeOfChild([] { std::exit(0); }), 0);
  const int code = CodeOfChild([] {
    StartLeaver(
        absl::Hours(1), [] {}, [] { std::_Exit(kLeft); });
    std::exit(0);
  });
  EXPECT_EQ(code, kLeft);
  go_on.set_value();
  WaitForLeavers();
}

}  // namespace
}  // namespace leeway::worker
