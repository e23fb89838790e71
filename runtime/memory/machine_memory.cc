#include "runtime/memory/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace leeway::runtime {
namespace {

std::optional<std::uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::uint64_t number = 0;
  if (!std::getline(file, text) || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// The limit files of this process's cgroup and of all its parents, which /proc/self/cgroup names: a
// line is "0::/a/b" (version 2) or "9:memory:/a/b" (version 1).
std::vector<std::string> LimitFiles(const std::string& root) {
  std::vector<std::string> files;
  const auto add = [&](absl::string_view folder, absl::string_view group, absl::string_view file) {
    for (;;) {
      files.push_back(absl::StrCat(root, folder, group == "/" ? "" : group, "/", file));
      if (group.empty() || group == "/") return;
      group = group.substr(0, group.rfind('/'));
    }
  };
  std::ifstream groups(absl::StrCat(root, "proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    if (parts[0] == "0") add("sys/fs/cgroup", parts[2], "memory.max");
    if (parts[1] == "memory") add("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes");
  }
  // Inside a container, the root of the hierarchy is the container's own group.
  add("sys/fs/cgroup", "", "memory.max");
  add("sys/fs/cgroup/memory", "", "memory.limit_in_bytes");
  return files;
}

}  // namespace

MemoryLimit MachineMemoryUnder(const std::string& root, std::uint64_t machine_bytes) {
  MemoryLimit limit{.bytes = machine_bytes, .from = "the machine's memory"};
  for (const std::string& file : LimitFiles(root)) {
    const std::optional<std::uint64_t> bytes = NumberIn(file);
    if (!bytes.has_value() || *bytes == 0 || *bytes >= limit.bytes) continue;
    limit = {.bytes = *bytes, .from = absl::StrCat("the container's limit (", file, ")")};
  }
  return limit;
}

MemoryLimit MachineMemory() {
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  MemoryLimit limit = MachineMemoryUnder("/", pages * page_bytes);
  struct rlimit own;
  if (::getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY &&
      own.rlim_cur < limit.bytes) {
    limit = {.bytes = own.rlim_cur, .from = "ulimit -v"};
  }
  return limit;
}

}  // namespace leeway::runtime
