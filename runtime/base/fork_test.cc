#include "runtime/base/fork.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <utility>

#include "runtime/base/unique_fd.h"

namespace leeway::runtime {
namespace {

// The exit code of a child that does that.
int ExitOf(const std::function<int()>& child) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(child());
  }
  int how = -1;
  return ::waitpid(pid, &how, 0) == pid && WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

bool IsNothing(int fd) {
  struct stat here {};
  struct stat nothing {};
  return ::fstat(fd, &here) == 0 && ::stat("/dev/null", &nothing) == 0 &&
         here.st_rdev == nothing.st_rdev && ::fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

TEST(ForkTest, AChildCountsOneMore) {
  const std::uint64_t here = ForkCount();
  EXPECT_EQ(ExitOf([&] { return ForkCount() == here + 1 ? 0 : 1; }), 0);
  EXPECT_EQ(ForkCount(), here);
}

// The other end of a pipe sees the end of the parent's, though a child lives.
TEST(ForkTest, ADescriptorClosedInChildrenKeepsItsNumberInUse) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reads(ends[0]);
  std::optional<UniqueFd> writes = UniqueFd::ClosedInChildren(ends[1]);
  std::optional<UniqueFd> another = UniqueFd::ClosedInChildren(::dup(ends[1]));
  const auto child = [&] {
    if (!IsNothing(writes->get()) || !IsNothing(another->get())) return 1;
    const UniqueFd own(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    char byte = 0;
    if (::read(reads.get(), &byte, 1) != -1) return 2;  // the parent's ends are open
    writes.reset();
    another.reset();
    return ::fcntl(own.get(), F_GETFD) >= 0 ? 0 : 3;
  };
  ASSERT_EQ(::fcntl(reads.get(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(ExitOf(child), 0);
  EXPECT_EQ(::write(writes->get(), "x", 1), 1);
}

TEST(ForkTest, ADescriptorIsMarkedAsLongAsItSays) {
  const UniqueFd reads(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC));
  {
    const ClosedInChildren closed(reads.get());
    EXPECT_EQ(ExitOf([&] { return IsNothing(reads.get()) ? 0 : 1; }), 0);
  }
  EXPECT_EQ(ExitOf([&] { return IsNothing(reads.get()) ? 1 : 0; }), 0);
}

// Its owner has closed it, and something else has got its number.
TEST(ForkTest, AMarkOfAnotherOwnersDescriptorIsOfThatFileAlone) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd marked(fds[0]), other(fds[1]);
  std::optional<ClosedInChildren> closed(std::in_place, marked.get());
  EXPECT_EQ(ExitOf([&] { return IsNothing(marked.get()) ? 0 : 1; }), 0);
  ASSERT_EQ(::dup3(other.get(), marked.get(), O_CLOEXEC), marked.get());
  EXPECT_EQ(ExitOf([&] { return IsNothing(marked.get()) ? 1 : 0; }), 0);
  SetClosedInChildren(marked.get(), true);  // by the one that has got it
  closed.reset();
  EXPECT_EQ(ExitOf([&] { return IsNothing(marked.get()) ? 0 : 1; }), 0);
  SetClosedInChildren(marked.get(), false);
}

}  // namespace
}  // namespace leeway::runtime
