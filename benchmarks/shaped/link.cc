#include "shaped/link.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::bench {
namespace {

// An address for documentation and tests; in a namespace of its own it collides with none.
constexpr char kHere[] = "198.51.100.1";
constexpr char kThere[] = "198.51.100.2";
// As short as a switch's queue: further messages wait where they can still be overtaken.
constexpr char kQueue[] = "latency 5ms";

absl::Status Missing(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(
      "no shaped link, which needs root, iproute2 and a kernel with veth and sch_tbf: ", what));
}

absl::Status Do(const std::string& command) {
  const int status = std::system(absl::StrCat(command, " >&2").c_str());
  if (status == 0) return absl::OkStatus();
  return Missing(absl::StrCat("'", command, "' failed"));
}

std::string NamespaceOf(pid_t pid) { return absl::StrCat("/proc/", pid, "/ns/net"); }

// Starts a process in its own namespace, and returns once it is there.
absl::StatusOr<Child> KeepNamespace() {
  int ends[2];
  if (pipe(ends) != 0) return Missing(std::strerror(errno));
  Child keeper = Child::Fork([&] {
    close(ends[0]);
    const char error = unshare(CLONE_NEWNET) == 0 ? 0 : static_cast<char>(errno);
    if (write(ends[1], &error, 1) == 1) pause();
    return 1;
  });
  close(ends[1]);
  char error = 0;
  const bool said = read(ends[0], &error, 1) == 1;
  close(ends[0]);
  if (!said) return Missing("a process could not be started");
  if (error != 0) return Missing(absl::StrCat("unshare: ", std::strerror(error)));
  return keeper;
}

}  // namespace

std::string ShapedLink::here() { return kHere; }
std::string ShapedLink::there() { return kThere; }

absl::StatusOr<ShapedLink> ShapedLink::Make(const std::string& rate, const std::string& burst) {
  if (unshare(CLONE_NEWNET) != 0) return Missing(absl::StrCat("unshare: ", std::strerror(errno)));
  ShapedLink link;
  LEEWAY_ASSIGN_OR_RETURN(link.keeper_, KeepNamespace());
  const std::string other = absl::StrCat("nsenter --net=", NamespaceOf(link.keeper_.pid()), " ");
  const std::string shape = absl::StrCat(" root tbf rate ", rate, " burst ", burst, " ", kQueue);
  for (const std::string& command : std::initializer_list<std::string>{
           absl::StrCat("ip link add near type veth peer name far netns ", link.keeper_.pid()),
           "ip link set lo up", absl::StrCat("ip addr add ", kHere, "/24 dev near"),
           "ip link set near up", absl::StrCat("tc qdisc add dev near", shape),
           absl::StrCat(other, "ip link set lo up"),
           absl::StrCat(other, "ip addr add ", kThere, "/24 dev far"),
           absl::StrCat(other, "ip link set far up"),
           absl::StrCat(other, "tc qdisc add dev far", shape)}) {
    LEEWAY_RETURN_IF_ERROR(Do(command));
  }
  return link;
}

absl::Status ShapedLink::Reshape(const std::string& rate, const std::string& burst) const {
  const std::string other = absl::StrCat("nsenter --net=", NamespaceOf(keeper_.pid()), " ");
  const std::string shape = absl::StrCat(" root tbf rate ", rate, " burst ", burst, " ", kQueue);
  LEEWAY_RETURN_IF_ERROR(Do(absl::StrCat("tc qdisc change dev near", shape)));
  return Do(absl::StrCat(other, "tc qdisc change dev far", shape));
}

absl::Status ShapedLink::CrossOver() const {
  const int fd = open(NamespaceOf(keeper_.pid()).c_str(), O_RDONLY | O_CLOEXEC);
  const bool moved = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  return moved ? absl::OkStatus() : Missing(absl::StrCat("setns: ", std::strerror(error)));
}

}  // namespace leeway::bench
