#include "compress/kernels/kernels.h"

#include <atomic>

#include "compress/kernels/levels.h"

namespace leeway::compress {
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

// Several threads that call it first at the same time choose the same.
const Kernels& ChosenKernels() {
  const Kernels* kernels = chosen.load(std::memory_order_relaxed);
  if (kernels == nullptr) {
    kernels = &KernelsOf(LevelsHere().back());
    chosen.store(kernels, std::memory_order_relaxed);
  }
  return *kernels;
}

void ChooseLevel(Level level) { chosen.store(&KernelsOf(level), std::memory_order_relaxed); }

}  // namespace leeway::compress
