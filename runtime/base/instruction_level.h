// Level names the instruction sets that kernels are compiled for; LevelsHere tells which of them
// this processor runs.
#ifndef LEEWAY_RUNTIME_BASE_INSTRUCTION_LEVEL_H_
#define LEEWAY_RUNTIME_BASE_INSTRUCTION_LEVEL_H_

#include <vector>

#include "absl/strings/string_view.h"

namespace leeway::runtime {

// In ascending order of speed. A kernel computes the same result, bit for bit, at every level.
enum class Level {
  kScalar,    // one element at a time: the reference that tests compare the other levels with
  kBaseline,  // vectors that every processor of the architecture has: SSE2 on x86-64
  kAvx2,      // with F16C
  kAvx512,    // AVX-512 F, BW, DQ and VL
};

// "scalar", "baseline", "avx2", "avx512".
absl::string_view Name(Level level);

// The levels that this processor and its operating system can run, ascending. Any thread.
const std::vector<Level>& LevelsHere();

}  // namespace leeway::runtime

#endif  // LEEWAY_RUNTIME_BASE_INSTRUCTION_LEVEL_H_
