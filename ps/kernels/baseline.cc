// Compiled for every processor of the kind.
#include "ps/kernels/levels.h"
#include "ps/kernels/loops/all.h"

namespace leeway::ps {

extern const Kernels kBaselineKernels = kLoops;

}  // namespace leeway::ps
