#include "benchmarks/lab/engine/shaped_network.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace leeway::lab {
namespace {

// Where iproute2 keeps the names of namespaces.
constexpr char kNames[] = "/run/netns";

absl::Status Missing(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("link_mbit and links of the real engine need root, iproute2 and a kernel with "
                   "veth, bridges and sch_tbf: ",
                   what));
}

absl::Status Failed(const char* call) {
  return Missing(absl::StrCat(call, ": ", std::strerror(errno)));
}

// Feeds commands to `ip -batch -` or `tc -batch -`, which stops at the first that fails.
absl::Status Batch(const std::string& program, const std::string& commands) {
  std::array<char, 512> said = {};
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) return Failed("tmpfile");
  const std::string command =
      absl::StrCat(program, " -batch - 2>&1 >/dev/null </dev/fd/", fileno(file));
  const bool written = std::fputs(commands.c_str(), file) >= 0 && std::fflush(file) == 0;
  std::rewind(file);
  std::FILE* const errors = written ? popen(command.c_str(), "r") : nullptr;
  if (errors == nullptr) {
    std::fclose(file);
    return Failed("popen");
  }
  const std::size_t size = std::fread(said.data(), 1, said.size() - 1, errors);
  const int status = pclose(errors);
  std::fclose(file);
  if (status == 0) return absl::OkStatus();
  const std::string text(said.data(), size);
  return Missing(absl::StrCat(program, ": ", text.substr(0, text.find('\n'))));
}

std::string NameOf(std::size_t node) { return absl::StrCat("n", node); }
std::string PortOf(std::size_t node) { return absl::StrCat("port", node); }

// A burst, which passes at once after a pause, is a packet, or what passes in a tick of the
// kernel's clock; the queue is a switch's, 50 ms.
std::string Shape(const std::string& card, double mbit) {
  const double burst_bytes = std::max(1'600.0, mbit * 1e6 / 8 * 0.004);
  return absl::StrCat("qdisc add dev ", card, " root tbf rate ", std::ceil(mbit * 1e6),
                      "bit burst ", std::ceil(burst_bytes), " latency 50ms\n");
}

}  // namespace

absl::Status ShapedNetwork::Make(const std::vector<NodeLink>& nodes) {
  if (nodes.size() > kNodesMax) return Missing(absl::StrCat("at most ", kNodesMax, " nodes"));
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return Failed("unshare");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("mount");
  if (mkdir(kNames, 0755) != 0 && errno != EEXIST) return Failed(kNames);
  if (mount("leeway", kNames, "tmpfs", 0, nullptr) != 0) return Failed("mount");
  std::string links =
      "link set lo up\nlink add hub type bridge\nlink set hub up\naddr add 198.18.0.1/15 dev hub\n";
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    absl::StrAppend(&links, "netns add ", NameOf(node), "\nlink add ", PortOf(node),
                    " type veth peer name eth0 netns ", NameOf(node), "\nlink set ", PortOf(node),
                    " master hub up\n");
  }
  LEEWAY_RETURN_IF_ERROR(Batch("ip", links));
  std::string ports;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const std::string inside = absl::StrCat(" -n ", NameOf(node));
    LEEWAY_RETURN_IF_ERROR(
        Batch("ip" + inside, absl::StrCat("link set lo up\naddr add ", AddressOf(node),
                                          "/15 dev eth0\nlink set eth0 up\n")));
    if (nodes[node].up_mbit > 0) {
      LEEWAY_RETURN_IF_ERROR(Batch("tc" + inside, Shape("eth0", nodes[node].up_mbit)));
    }
    if (nodes[node].down_mbit > 0) ports += Shape(PortOf(node), nodes[node].down_mbit);
  }
  return ports.empty() ? absl::OkStatus() : Batch("tc", ports);
}

absl::Status ShapedNetwork::Check() {
  int ends[2];
  if (pipe(ends) != 0) return Failed("pipe");
  const pid_t child = fork();
  if (child < 0) return Failed("fork");
  if (child == 0) {
    const std::string said(Make({{.up_mbit = 100, .down_mbit = 100}}).message());
    const bool ok = said.empty() || write(ends[1], said.data(), said.size()) > 0;
    _exit(ok ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  std::array<char, 1024> part;
  for (ssize_t size = 0; (size = read(ends[0], part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(size));
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return said.empty() ? absl::OkStatus() : absl::FailedPreconditionError(said);
}

std::vector<std::string> ShapedNetwork::Inside(std::size_t node) {
  return {"ip", "netns", "exec", NameOf(node)};
}

// The range for measurements of networks (RFC 2544), from its second /24 on.
std::string ShapedNetwork::AddressOf(std::size_t node) {
  return absl::StrCat("198.18.", 1 + node / 250, ".", 1 + node % 250);
}

}  // namespace leeway::lab
