// MachineMemory tells how much memory this process may use: that of the machine, or the limit of
// its container (cgroup) or of the process (ulimit -v) where that is less.
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

// Reads the system's files. Any thread.
MemoryLimit MachineMemory();

// As MachineMemory without ulimit -v, for a system whose files lie under `root` instead of "/". A
// file that does not exist or does not hold a number is no limit.
MemoryLimit MachineMemoryUnder(const std::string& root, std::uint64_t machine_bytes);

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_MEMORY_MACHINE_MEMORY_H_
