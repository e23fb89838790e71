#include "ps/kernels/kernels.h"

#include <atomic>

#include "ps/kernels/levels.h"

namespace leeway::ps {
namespace {

std::atomic<const Kernels*> chosen = nullptr;

}  // namespace

const Kernels& KernelsOf(Level level) {
  switch (level) {
    case Level::kScalar:
      return kScalarKernels;
#if defined(__x86_64__)
    case Level::kAvx2:
      return kAvx2Kernels;
    case Level::kAvx512:
      return kAvx512Kernels;
#endif
    default:
      return kBaselineKernels;
  }
}

// The first caller chooses; threads that call at the same time choose the same.
const Kernels& ChosenKernels() {
  const Kernels* kernels = chosen.load(std::memory_order_relaxed);
  if (kernels == nullptr) {
    kernels = &KernelsOf(LevelsHere().back());
    chosen.store(kernels, std::memory_order_relaxed);
  }
  return *kernels;
}

Level ChosenLevel() {
  for (const Level level : LevelsHere()) {
    if (&KernelsOf(level) == &ChosenKernels()) return level;
  }
  return Level::kBaseline;
}

void ChooseLevel(Level level) { chosen.store(&KernelsOf(level), std::memory_order_relaxed); }

}  // namespace leeway::ps
