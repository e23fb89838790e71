// Compiled for every processor of the architecture.
#include "compress/kernels/levels.h"
#include "compress/kernels/loops/all.h"

namespace leeway::compress {

extern const Kernels kBaselineKernels = kLoops;

}  // namespace leeway::compress
