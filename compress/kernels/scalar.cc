// Compiled without vectors (CMakeLists.txt).
#define LEEWAY_ONE_AT_A_TIME 1
#include "compress/kernels/levels.h"
#include "compress/kernels/loops/all.h"

namespace leeway::compress {

extern const Kernels kScalarKernels = kLoops;

}  // namespace leeway::compress
