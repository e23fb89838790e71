// Compiled without vectors (CMakeLists.txt).
#define LEEWAY_ONE_AT_A_TIME 1
#include "ps/kernels/levels.h"
#include "ps/kernels/loops/all.h"

namespace leeway::ps {

extern const Kernels kScalarKernels = kLoops;

}  // namespace leeway::ps
