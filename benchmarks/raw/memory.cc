#include <cstring>
#include <vector>

#include "harness/stopwatch.h"
#include "raw/raw_limits.h"

namespace leeway::bench {

Measured MeasureMemory(const Command& command) {
  Measured measured;
  if (command.op != "copy") {
    measured.error = "memory knows copy only";
    return measured;
  }
  const std::size_t count = static_cast<std::size_t>(command.in_flight);
  const std::vector<char> source(count * command.bytes, 1);
  std::vector<char> target(count * command.bytes, 2);
  const Stopwatch watch;
  while (measured.operations == 0 || watch.Seconds() < command.seconds) {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(target.data() + i * command.bytes, source.data() + i * command.bytes,
                  command.bytes);
      asm volatile(""
                   :
                   : "r"(target.data())
                   : "memory");  // keeps the compiler from dropping copies
    }
    measured.operations += count;
  }
  measured.seconds = watch.Seconds();
  measured.cpu_seconds = watch.Cpu();
  measured.bytes = measured.operations * command.bytes;
  return measured;
}

}  // namespace leeway::bench
