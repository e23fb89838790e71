// How much memory this process may take: that of the machine, or of its container (cgroup) or of
// its own limit (ulimit -v) where that is less.
#ifndef LEEWAY_RUNTIME_MEMORY_MACHINE_MEMORY_H_
#define LEEWAY_RUNTIME_MEMORY_MACHINE_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string from;  // "the machine's memory", "the container's limit (/sys/fs/…)", "ulimit -v"
};

MemoryLimit MachineMemory();

// As MachineMemory, of a system whose files lie under `root` instead of "/". Files that are not
// there, or do not hold a number, limit nothing.
MemoryLimit MachineMemoryUnder(const std::string& root, std::uint64_t machine_bytes);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_MACHINE_MEMORY_H_
