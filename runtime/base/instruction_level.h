// Instruction sets that the kernels are compiled for.
#ifndef LEEWAY_RUNTIME_BASE_INSTRUCTION_LEVEL_H_
#define LEEWAY_RUNTIME_BASE_INSTRUCTION_LEVEL_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// From the slowest to the fastest. What a kernel computes does not depend on the level.
enum class Level {
  kScalar,    // one element at a time: what the others are compared with
  kBaseline,  // vectors that every processor of the kind has: SSE2 on x86-64
  kAvx2,      // with F16C
  kAvx512,    // F, BW, DQ and VL
};

// "scalar", "baseline", "avx2", "avx512".
absl::string_view Name(Level level);

// Those that this processor and its operating system can run, ascending.
const std::vector<Level>& LevelsHere();

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_INSTRUCTION_LEVEL_H_
