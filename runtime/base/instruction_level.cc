#include "runtime/base/instruction_level.h"

namespace leeway::runtime {
namespace {

std::vector<Level> FindLevels() {
  std::vector<Level> levels = {Level::kScalar, Level::kBaseline};
#if defined(__x86_64__)
  // These builtins also check that the operating system saves the registers.
  if (!__builtin_cpu_supports("avx2")) return levels;
#if !defined(__clang__)  // clang 14 (fuzzers) does not know f16c; all processors with AVX2 have it
  if (!__builtin_cpu_supports("f16c")) return levels;
#endif
  levels.push_back(Level::kAvx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    levels.push_back(Level::kAvx512);
  }
#endif
  return levels;
}

}  // namespace

absl::string_view Name(Level level) {
  switch (level) {
    case Level::kScalar:
      return "scalar";
    case Level::kBaseline:
      return "baseline";
    case Level::kAvx2:
      return "avx2";
    case Level::kAvx512:
      return "avx512";
  }
  return "unknown";
}

const std::vector<Level>& LevelsHere() {
  static const auto& levels = *new std::vector<Level>(FindLevels());
  return levels;
}

}  // namespace leeway::runtime
